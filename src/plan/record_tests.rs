//! The records of every kind of change; every reader of a value that was not sent.

use super::testing::{column, compile, key_schema, or, required, table, value_schema};
use super::{
    BeforeUnsent, Extensions, Incomplete, IncompleteRows, Operation, PlanSettings, TablePlan,
};
use crate::change::{BeforeImage, ChangeKind, ColumnType, TableVersion};
use crate::error::Code;
use crate::record::{
    Expression, Guard, HeaderShape, HeaderValue, Leaf, Literal, Node, RecordShape, Schema, Shape,
    Unsent,
};

/// `id` is key and identity; the others differ in what can stand for them.
fn item() -> TableVersion {
    table(
        "item",
        vec![
            required("id", ColumnType::Int32),
            required("doc", ColumnType::Text),
            or("42", required("n", ColumnType::Int32)),
            column("note", ColumnType::Text),
        ],
    )
}

fn with_image(image: BeforeImage) -> TableVersion {
    TableVersion { before_image: image, ..item() }
}

fn without_key(image: BeforeImage) -> TableVersion {
    TableVersion { key: Vec::new(), before_image: image, ..item() }
}

fn plan_with(version: TableVersion, change: impl FnOnce(&mut PlanSettings)) -> TablePlan {
    let mut settings = PlanSettings::new("shop");
    change(&mut settings);
    compile(version, &settings).unwrap()
}

fn plan(version: TableVersion) -> TablePlan {
    plan_with(version, |_| {})
}

/// A record in a word: op or `tombstone`, and the image that its key comes from.
fn outline(record: &RecordShape) -> String {
    let key = match record.key.as_ref().map(|key| &key.node) {
        None => "null",
        Some(Node::Struct(fields)) => match fields[0].node {
            Node::Value { leaf: Leaf::Before(_), .. } => "old",
            Node::Value { leaf: Leaf::After(_), .. } => "new",
            _ => "?",
        },
        Some(_) => "?",
    };
    let op = record.value.as_ref().map_or("tombstone", |value| op(value));
    format!("{op}({key})")
}

fn op(value: &Shape) -> &str {
    match &field(value, "op").node {
        Node::Constant(Literal::String(op)) => op,
        _ => "?",
    }
}

fn field<'s>(shape: &'s Shape, name: &str) -> &'s Shape {
    let index = shape.schema.fields().iter().position(|field| field.name == name).unwrap();
    match &shape.node {
        Node::Struct(fields) => &fields[index],
        other => panic!("{name} of {other:?}"),
    }
}

#[track_caller]
fn check_kinds(plan: &TablePlan, expect: [&str; 6]) {
    let outlines = ChangeKind::ALL
        .map(|kind| plan.kinds[kind as usize].iter().map(outline).collect::<Vec<_>>().join(" "));
    let (messages, rows) = outlines.split_last().unwrap();
    let (rows, moves) = rows.split_at(expect.len());
    assert_eq!(rows, expect);
    // without a filter, too: what a former one left out may still have to come
    let [_, create, _, _, delete, _] = expect;
    let found_out = if plan.untellable.is_none() { delete } else { "" };
    assert_eq!(moves, [create, delete, found_out], "rows that move are creates and deletes");
    assert_eq!(messages, "", "a table has no messages");
}

#[test]
fn rows_that_move_are_creates_and_deletes() {
    let plan = plan_with(item(), |s| s.rows_move = true);
    let kind = |kind: ChangeKind| plan.kinds[kind as usize].iter().map(outline).collect::<Vec<_>>();
    assert_eq!(kind(ChangeKind::MovedIn), ["c(new)"]);
    assert_eq!(kind(ChangeKind::MovedOut), ["d(old)", "tombstone(old)"]);
    assert_eq!(kind(ChangeKind::FoundOut), ["d(old)", "tombstone(old)"]);
}

#[test]
fn a_row_that_may_never_have_been_published_is_deleted_by_its_key_alone() {
    for image in [BeforeImage::Full, BeforeImage::Key(vec![0]), BeforeImage::None] {
        let plan = plan(TableVersion { before_image: image, ..item() });
        let delete = &plan.kinds[ChangeKind::FoundOut as usize][0];
        let before = field(delete.value.as_ref().unwrap(), "before");
        let Node::Struct(fields) = &before.node else { panic!("{before:?}") };
        for (index, shape) in fields.iter().enumerate() {
            let Node::Column { unsent, .. } = &shape.node else { panic!("{shape:?}") };
            let is_key = matches!(unsent, Unsent::Refuse(_));
            assert_eq!(is_key, index == 0, "column {index}: {unsent:?}");
        }
    }
}

#[test]
fn rows_without_a_key_cannot_be_told_anew() {
    let fault = plan(without_key(BeforeImage::Full)).untellable.unwrap();
    assert_eq!(fault.code(), Code::FilterChanged);
    assert!(plan(item()).untellable.is_none());
}

#[test]
fn each_kind_has_its_records() {
    let key_change = "d(old) tombstone(old) c(new)";
    let delete = "d(old) tombstone(old)";
    check_kinds(&plan(item()), ["r(new)", "c(new)", "u(new)", key_change, delete, ""]);
    check_kinds(
        &plan_with(item(), |s| s.skipped = super::OperationSet::EMPTY),
        ["r(new)", "c(new)", "u(new)", key_change, delete, "t(null)"],
    );
    check_kinds(
        &plan_with(item(), |s| s.tombstones_on_delete = false),
        ["r(new)", "c(new)", "u(new)", "d(old) c(new)", "d(old)", ""],
    );
}

#[test]
fn without_a_key_there_are_neither_tombstones_nor_key_changes() {
    check_kinds(
        &plan(without_key(BeforeImage::Full)),
        ["r(null)", "c(null)", "u(null)", "u(null)", "d(null)", ""],
    );
}

#[test]
fn a_skipped_update_takes_its_key_changes_along() {
    let skipping = |operations: &[Operation]| {
        plan_with(item(), |s| s.skipped = operations.iter().copied().collect())
    };
    check_kinds(
        &skipping(&[Operation::Update, Operation::Delete]),
        ["r(new)", "c(new)", "", "", "", "t(null)"],
    );
    check_kinds(
        &skipping(&[Operation::Create, Operation::Truncate]),
        ["r(new)", "", "u(new)", "d(old) tombstone(old) c(new)", "d(old) tombstone(old)", ""],
    );
}

/// What becomes of an image's columns if they were not sent, in a word each; `null`: no image.
fn unsent(record: &RecordShape, image: &str) -> String {
    let shape = field(record.value.as_ref().unwrap(), image);
    match &shape.node {
        Node::Constant(Literal::Null) => "null".to_owned(),
        Node::Struct(fields) => fields
            .iter()
            .map(|shape| match &shape.node {
                Node::Column { unsent: Unsent::Refuse(_), .. } => "refused",
                Node::Column { unsent: Unsent::Null, .. } if shape.schema.optional => "null",
                Node::Column { unsent: Unsent::Stamp(Literal::Int(42)), .. } => "42",
                Node::Column { unsent: Unsent::Stamp(Literal::String(text)), .. } => text,
                _ => "?",
            })
            .collect::<Vec<_>>()
            .join(","),
        other => format!("{other:?}"),
    }
}

#[track_caller]
fn check_images(plan: &TablePlan, kind: ChangeKind, part: usize, before: &str, after: &str) {
    let record = &plan.kinds[kind as usize][part];
    assert_eq!(
        (unsent(record, "before").as_str(), unsent(record, "after").as_str()),
        (before, after)
    );
}

/// The row after: text is marked, a number has no value left for a mark.
const MARKED: &str = "refused,__debezium_unavailable_value,refused,__debezium_unavailable_value";
const REFUSED: &str = "refused,refused,refused,refused";

#[test]
fn an_image_shows_what_was_sent_and_says_what_was_not() {
    use ChangeKind::{Create, Delete, KeyChange, Read, Update};
    let key_only = plan(item());
    check_images(&key_only, Read, 0, "null", REFUSED);
    check_images(&key_only, Create, 0, "null", REFUSED);
    check_images(&key_only, Update, 0, "null", MARKED);
    check_images(&key_only, Delete, 0, "refused,null,null,null", "null");
    check_images(&key_only, KeyChange, 0, "refused,null,null,null", "null");
    check_images(&key_only, KeyChange, 2, "null", MARKED);

    let filled = plan_with(item(), |s| s.before_unsent = BeforeUnsent::Fill);
    check_images(&filled, Delete, 0, "refused,,42,null", "null");

    let shapes = table(
        "shapes",
        vec![
            required("id", ColumnType::Int32),
            required("place", ColumnType::Geometry { geodetic: false }),
            column("area", ColumnType::Geometry { geodetic: false }),
        ],
    );
    let filled = plan_with(shapes, |s| s.before_unsent = BeforeUnsent::Fill);
    check_images(&filled, Delete, 0, "refused,?,null", "null");

    let full = plan(with_image(BeforeImage::Full));
    check_images(&full, Update, 0, REFUSED, MARKED);
    check_images(&full, Delete, 0, REFUSED, "null");

    let none = plan(with_image(BeforeImage::None));
    check_images(&none, Delete, 0, "refused,null,null,null", "null");

    let strict = plan_with(item(), |s| s.incomplete = IncompleteRows::refused("a row"));
    check_images(&strict, Update, 0, "null", REFUSED);
}

#[test]
fn before_has_a_type_of_its_own_only_where_the_row_has_no_room_for_null() {
    let before_name = |plan: &TablePlan| {
        let before = &value_schema(plan).fields()[0].schema;
        assert!(before.optional);
        before.name.clone().unwrap()
    };
    let own = "shop.public.item.Before.Value";
    assert_eq!(before_name(&plan(item())), own);
    // A change of the identity rule alone does not change the schema.
    let full = plan(with_image(BeforeImage::Full));
    assert_eq!(before_name(&full), own);
    assert_eq!(value_schema(&full), value_schema(&plan(item())));
    let filled = plan_with(item(), |s| s.before_unsent = BeforeUnsent::Fill);
    assert_eq!(before_name(&filled), "shop.public.item.Value");
    let nullable = table(
        "item",
        vec![required("id", ColumnType::Int32), or("1", column("n", ColumnType::Int32))],
    );
    assert_eq!(before_name(&plan(nullable)), "shop.public.item.Value");
    let plan = plan(item());
    let before = value_schema(&plan).fields()[0].schema.fields();
    let (id, n) = (&before[0].schema, &before[2].schema);
    assert!(!id.optional && n.optional && n.default.is_none());
}

fn header<'r>(record: &'r RecordShape, name: &str) -> Option<&'r HeaderShape> {
    record.headers.iter().find(|header| header.name == name)
}

/// The columns that the header names if they were not sent.
fn named_unavailable(record: &RecordShape) -> Vec<&str> {
    let Some(header) = header(record, "__tidegate.unavailable") else { return Vec::new() };
    let HeaderValue::Expression(Expression::NamesOfUnsent(names)) = &header.value else {
        panic!("{header:?}");
    };
    let leaves = names.iter().map(|(leaf, _)| leaf.clone()).collect();
    assert_eq!(header.guard, Guard::AnyUnsent(leaves));
    names.iter().map(|(_, name)| name.as_str()).collect()
}

#[test]
fn whatever_is_not_known_is_named_in_a_header() {
    use ChangeKind::{Create, Delete, KeyChange, Read, Update};
    let plan = plan(item());
    let named = |kind: ChangeKind, part: usize| {
        let record = &plan.kinds[kind as usize][part];
        let guarded = header(record, "__tidegate.unmergeable").is_some();
        assert_eq!(guarded, !plan.unmergeable(kind).is_empty() && part != 0);
        (named_unavailable(record), guarded)
    };
    assert_eq!(named(Read, 0), (vec![], false));
    assert_eq!(named(Create, 0), (vec![], false));
    assert_eq!(named(Update, 0), (vec!["doc", "note"], false));
    assert_eq!(named(Delete, 0), (vec!["doc", "n", "note"], false));
    assert_eq!(named(Delete, 1), (vec![], false));
    assert_eq!(named(KeyChange, 0), (vec!["doc", "n", "note"], false));
    assert_eq!(named(KeyChange, 2), (vec!["doc", "note"], true));
}

#[test]
fn a_row_that_nobody_knows_yet_is_marked_only_where_that_is_asked_for() {
    use ChangeKind::{Create, KeyChange, Update};
    let refused = |what| IncompleteRows { creates: Incomplete::Refuse(what), ..Default::default() };
    let strict = plan_with(item(), |s| s.incomplete = refused("a new row"));
    let after = |plan: &TablePlan, kind: ChangeKind, part: usize| {
        unsent(&plan.kinds[kind as usize][part], "after")
    };
    assert_eq!(after(&strict, Create, 0), REFUSED);
    assert_eq!(strict.unmergeable(Create), Vec::<usize>::new());
    assert_eq!(strict.unmergeable(KeyChange), [1, 3]);
    let lax = plan_with(item(), |s| s.incomplete.creates = Incomplete::Mark);
    assert_eq!(after(&lax, Create, 0), MARKED);
    assert_eq!(lax.unmergeable(Create), [1, 3]);
    let key = plan_with(item(), |s| s.incomplete.key_changes = Incomplete::Refuse("a new key"));
    assert_eq!(
        (after(&key, KeyChange, 2), after(&key, Update, 0)),
        (REFUSED.to_owned(), MARKED.to_owned())
    );
    assert_eq!(key.unmergeable(KeyChange), Vec::<usize>::new());
}

#[test]
fn what_may_be_asked_for_anew_is_named_in_a_header() {
    let reselected = "__tidegate.reselected";
    let plan = plan_with(item(), |s| s.incomplete.rereads = true);
    for record in plan.kinds.iter().flatten() {
        let is_created_anew = header(record, "__debezium.oldkey").is_some();
        assert_eq!(header(record, reselected).is_some(), is_created_anew);
    }
    let header = header(&plan.kinds[ChangeKind::KeyChange as usize][2], reselected).unwrap();
    let names = vec![(1, "doc".to_owned()), (3, "note".to_owned())];
    assert_eq!(header.value, HeaderValue::Expression(Expression::NamesOfReread(names)));
    assert_eq!(header.guard, Guard::AnyReread(vec![1, 3]));
}

#[test]
fn every_record_says_where_it_comes_from() {
    let plan = plan_with(item(), |s| s.skipped = super::OperationSet::EMPTY);
    for record in plan.kinds.iter().flatten() {
        let value = |name| &header(record, name).unwrap().value;
        assert_eq!(*value("__tidegate.epoch"), HeaderValue::Constant("3".to_owned()));
        let text = |leaf| HeaderValue::Expression(Expression::Text(leaf));
        assert_eq!(*value("__tidegate.position"), text(Leaf::CommitPosition));
        assert_eq!(*value("__tidegate.tx_seq"), text(Leaf::Sequence));
        assert_eq!(*value("__tidegate.part"), HeaderValue::Expression(Expression::Part));
    }
    let bare = plan_with(item(), |s| {
        s.incomplete = IncompleteRows::refused("a row");
        s.extensions = Extensions::None;
    });
    let names = |kind: ChangeKind| {
        let records = bare.kinds[kind as usize].iter();
        records.map(|r| r.headers.iter().map(|h| h.name.as_str()).collect::<Vec<_>>()).collect()
    };
    let linked: Vec<Vec<&str>> = names(ChangeKind::KeyChange);
    let (new, old) = ("__debezium.newkey", "__debezium.oldkey");
    assert_eq!(linked, [vec![new], vec![new], vec![old]]);
    let none: Vec<Vec<&str>> = names(ChangeKind::Delete);
    assert_eq!(none, [Vec::<&str>::new(), Vec::new()]);
}

#[test]
fn the_records_of_a_key_change_name_each_others_keys() {
    let plan = plan(item());
    let records = &plan.kinds[ChangeKind::KeyChange as usize];
    let linked = |record: &RecordShape| match &record.headers[0].value {
        HeaderValue::Shape(shape) => Some(shape.clone()),
        HeaderValue::Constant(_) | HeaderValue::Expression(_) => None,
    };
    assert_eq!(linked(&records[0]), records[2].key);
    assert_eq!(linked(&records[1]), records[2].key);
    assert_eq!(linked(&records[2]), records[0].key);
}

/// Every place in a plan that reads a value, with what happens there if it was not sent.
///
/// A new reader without a line here fails the test: keys, headers and the source block must refuse,
/// and only the plain copy of a column into its own field may go on.
#[test]
fn every_reader_of_an_unavailable_value_is_accounted_for() {
    let mut readers = Vec::new();
    for image in [BeforeImage::Full, BeforeImage::Key(vec![0]), BeforeImage::None] {
        let plan = plan_with(with_image(image), |s| s.skipped = super::OperationSet::EMPTY);
        for record in plan.kinds.iter().flatten() {
            assert_eq!(record.guard, Guard::Always);
            record.key.iter().for_each(|shape| walk(shape, "key", &mut readers));
            record.value.iter().for_each(|shape| walk(shape, "value", &mut readers));
            for header in &record.headers {
                match (&header.value, &header.guard) {
                    (HeaderValue::Shape(shape), Guard::Always) => {
                        walk(shape, "header", &mut readers);
                    }
                    (
                        HeaderValue::Expression(Expression::NamesOfUnsent(_)),
                        Guard::AnyUnsent(_),
                    ) => readers.push("header: names it".to_owned()),
                    (HeaderValue::Constant(_), Guard::AnyUnsent(_)) => {
                        readers.push("header: says that there is one".to_owned());
                    }
                    (HeaderValue::Expression(Expression::Text(leaf)), Guard::Always) => {
                        assert!(!is_column(leaf), "{header:?}");
                    }
                    (
                        HeaderValue::Constant(_) | HeaderValue::Expression(Expression::Part),
                        Guard::Always,
                    ) => {}
                    other => panic!("a reader without a rule: {other:?}"),
                }
            }
        }
    }
    readers.sort();
    readers.dedup();
    assert_eq!(
        readers,
        [
            "header: names it",
            "header: refuses",
            "header: says that there is one",
            "key: refuses",
            "value: copies into its own field",
        ]
    );
}

fn walk(shape: &Shape, place: &str, readers: &mut Vec<String>) {
    match &shape.node {
        Node::Struct(fields) => fields.iter().for_each(|shape| walk(shape, place, readers)),
        Node::Constant(_) => {}
        Node::Column { leaf, .. } => {
            assert!(is_column(leaf));
            readers.push(format!("{place}: copies into its own field"));
        }
        Node::Value { leaf, .. } if is_column(leaf) => readers.push(format!("{place}: refuses")),
        Node::Value { .. } => {}
    }
}

const fn is_column(leaf: &Leaf) -> bool {
    match leaf {
        Leaf::Before(_) | Leaf::After(_) => true,
        Leaf::Source(_)
        | Leaf::ProcessedAt
        | Leaf::CommitPosition
        | Leaf::Sequence
        | Leaf::Transaction(_) => false,
    }
}

#[test]
fn the_source_block_is_constant_but_for_what_changes() {
    let plan = plan(item());
    let record = &plan.kinds[ChangeKind::Create as usize][0];
    let source = field(record.value.as_ref().unwrap(), "source");
    let constant = |name: &str| match &field(source, name).node {
        Node::Constant(Literal::String(text)) => text.clone(),
        other => panic!("{other:?}"),
    };
    assert_eq!(constant("connector"), "test");
    assert_eq!(constant("schema"), "public");
    assert_eq!(constant("table"), "item");
    assert!(matches!(field(source, "ts_ms").node, Node::Value { leaf: Leaf::Source(0), .. }));
}

#[track_caller]
fn check_refused(version: TableVersion, code: Code, column: Option<&str>) {
    let fault = compile(version, &PlanSettings::new("shop")).unwrap_err();
    assert_eq!(fault.code(), code, "{fault}");
    assert_eq!(fault.place().table.as_deref(), Some("public.item"));
    assert_eq!(fault.place().column.as_deref(), column);
}

#[test]
fn what_cannot_be_published_is_refused_with_its_place() {
    let mut foreign_key = item();
    foreign_key.key = vec![0, 1];
    check_refused(foreign_key, Code::SourceReplicaIdentity, Some("doc"));
    let mut dangling = item();
    dangling.key = vec![9];
    check_refused(dangling, Code::Internal, None);

    let mut settings = PlanSettings::new("shop");
    settings.field_names = super::NameAdjustment::Avro;
    let twins = vec![required("a-b", ColumnType::Int32), column("a_b", ColumnType::Int32)];
    let fault = compile(table("item", twins), &settings).unwrap_err();
    assert_eq!(fault.code(), Code::SchemaIllegalName);
    assert_eq!(fault.place().column.as_deref(), Some("a_b"));
}

#[test]
fn names_are_adjusted_in_schemas_and_not_in_topics() {
    let version = table("T$1", vec![required("K-1", ColumnType::Int32)]);
    let plan = plan_with(version, |s| {
        s.topic_prefix = "my-shop".to_owned();
        s.schema_names = super::NameAdjustment::Avro;
        s.field_names = super::NameAdjustment::Avro;
    });
    assert!(plan.records().all(|record| record.topic.fixed() == Some("my-shop.public.T_1")));
    let key = key_schema(&plan).unwrap();
    assert_eq!(key.name.as_deref(), Some("my_shop.public.T_1.Key"));
    assert_eq!(key.fields()[0].name, "K_1");
    assert_eq!(value_schema(&plan).name.as_deref(), Some("my_shop.public.T_1.Envelope"));
}

#[test]
fn a_default_that_cannot_be_shown_is_left_out() {
    let version = table(
        "item",
        vec![required("id", ColumnType::Int32), or("not a number", column("n", ColumnType::Int32))],
    );
    let plan = plan(version);
    assert_eq!(value_schema(&plan).fields()[1].schema.fields()[1].schema.default, None);
}

#[test]
fn comments_are_documentation_where_that_is_asked_for() {
    let mut version = item();
    version.comment = Some("an item".to_owned());
    version.columns[0].comment = Some("its number".to_owned());
    version.columns[1].comment = Some("its text".to_owned());
    let documented = plan_with(version.clone(), |s| s.values.comments = true);
    let docs = |schema: &Schema| {
        let fields = schema.fields().iter();
        let mut docs = vec![schema.doc.clone()];
        docs.extend(fields.map(|field| field.schema.doc.clone()));
        docs.into_iter().map(Option::unwrap_or_default).collect::<Vec<_>>()
    };
    let value = value_schema(&documented);
    for image in value.fields().iter().take(2) {
        assert_eq!(docs(&image.schema)[..3], ["an item", "its number", "its text"]);
    }
    let key = &documented.kinds[ChangeKind::Create as usize][0].key.as_ref().unwrap().schema;
    assert_eq!(docs(key), ["", "its number"]);
    assert_eq!(value_schema(&plan(version)), value_schema(&plan(item())));
}
