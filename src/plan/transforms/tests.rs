//! What each transform makes of a plan's records, and every reader of an unavailable value again.

use super::{
    Condition, DeleteHandling, ExtractNewRecordState, FieldReference, Predicate, RegexRouter,
    ReplaceField, Step, TopicPattern, Transform, routed_topic,
};
use crate::change::{BeforeImage, ChangeKind, ColumnType, TableVersion};
use crate::error::{Code, Fault};
use crate::plan::testing::{column, compile, or, required, table, value_schema};
use crate::plan::{BeforeUnsent, PlanSettings, TablePlan};
use crate::record::{
    Expression, Guard, HeaderShape, HeaderValue, Leaf, Literal, Node, RecordShape, Route, Shape,
    Side, Topic, Unsent,
};

fn step(transform: Transform) -> Step {
    Step { name: "t".to_owned(), transform, condition: None }
}

fn only(predicate: Predicate, step: Step) -> Step {
    Step { condition: Some(Condition { predicate, negate: false }), ..step }
}

fn not(predicate: Predicate, step: Step) -> Step {
    Step { condition: Some(Condition { predicate, negate: true }), ..step }
}

fn references(elements: &str, prefix: &str) -> Vec<FieldReference> {
    let elements = elements.split(',').filter(|element| !element.is_empty());
    elements.map(|element| FieldReference::parse(element, prefix).unwrap()).collect()
}

fn unwrap_with(deletes: DeleteHandling, add_fields: &str, add_headers: &str) -> Step {
    step(Transform::ExtractNewRecordState(ExtractNewRecordState {
        deletes,
        add_fields: references(add_fields, "__"),
        add_headers: references(add_headers, "__"),
        route_by_field: None,
    }))
}

fn unwrap(deletes: DeleteHandling) -> Step {
    unwrap_with(deletes, "", "")
}

fn routed(deletes: DeleteHandling, field: &str) -> Step {
    let mut step = unwrap(deletes);
    if let Transform::ExtractNewRecordState(unwrap) = &mut step.transform {
        unwrap.route_by_field = Some(field.to_owned());
    }
    step
}

fn router(regex: &str, replacement: &str) -> Step {
    let pattern = TopicPattern::parse(regex).unwrap();
    step(Transform::RegexRouter(RegexRouter::new(pattern, replacement).unwrap()))
}

fn replace(side: Side, include: &[&str], exclude: &[&str], renames: &[(&str, &str)]) -> Step {
    let owned = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
    let renames = renames.iter().map(|(from, to)| ((*from).to_owned(), (*to).to_owned()));
    step(Transform::ReplaceField(ReplaceField {
        side,
        include: owned(include),
        exclude: owned(exclude),
        renames: renames.collect(),
    }))
}

fn topic(pattern: &str) -> Predicate {
    Predicate::TopicNameMatches(TopicPattern::parse(pattern).unwrap())
}

fn has_header(name: &str) -> Predicate {
    Predicate::HasHeaderKey(name.to_owned())
}

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

fn without_key() -> TableVersion {
    TableVersion { key: Vec::new(), before_image: BeforeImage::Full, ..item() }
}

fn settings(steps: &[Step]) -> PlanSettings {
    let mut settings = PlanSettings::new("shop");
    settings.skipped = crate::plan::OperationSet::EMPTY;
    settings.transforms = steps.to_vec();
    settings
}

fn try_plan(version: TableVersion, steps: &[Step]) -> Result<TablePlan, Fault> {
    compile(version, &settings(steps))
}

#[track_caller]
fn plan(version: TableVersion, steps: &[Step]) -> TablePlan {
    try_plan(version, steps).unwrap()
}

fn records(plan: &TablePlan, kind: ChangeKind) -> &[RecordShape] {
    &plan.kinds[kind as usize]
}

/// A record in a few words: topic without the prefix, names of the key's fields, and what the value
/// is: `-` (a tombstone), `envelope`, or the names of its fields with constants shown.
fn outline(record: &RecordShape) -> String {
    let names = |shape: &Shape| {
        let Node::Struct(shapes) = &shape.node else { panic!("{shape:?}") };
        let fields = shape.schema.fields().iter().zip(shapes);
        let names = fields.map(|(field, shape)| match &shape.node {
            Node::Constant(Literal::String(text)) => format!("{}={text}", field.name),
            Node::Constant(Literal::Null) => format!("{}=null", field.name),
            _ => field.name.clone(),
        });
        names.collect::<Vec<_>>().join(",")
    };
    let topic = match &record.topic {
        Topic::Fixed(topic) => topic.strip_prefix("shop.public.").unwrap_or(topic).to_owned(),
        Topic::Routed(Route { by: Shape { node: Node::Value { leaf, .. }, .. }, .. }) => {
            format!("{leaf:?}")
        }
        Topic::Routed(route) => panic!("{route:?}"),
    };
    let key = record.key.as_ref().map_or_else(|| "null".to_owned(), names);
    let value = match &record.value {
        None => "-".to_owned(),
        Some(value) if value.schema.name.as_deref().unwrap().ends_with(".Envelope") => {
            "envelope".to_owned()
        }
        Some(value) => names(value),
    };
    format!("{topic} {key} {value}")
}

#[track_caller]
fn check(plan: &TablePlan, kind: ChangeKind, expect: &[&str]) {
    let outlines: Vec<_> = records(plan, kind).iter().map(outline).collect();
    assert_eq!(outlines, expect);
}

const ROW: &str = "item id id,doc,n,note";
const NOT_DELETED: &str = "item id id,doc,n,note,__deleted=false";
const DELETED: &str = "item id id,doc,n,note,__deleted=true";
const TOMBSTONE: &str = "item id -";

#[test]
fn a_row_takes_the_place_of_its_envelope() {
    use ChangeKind::{Create, Delete, KeyChange, Read, Truncate, Update};
    use DeleteHandling::{DeleteToTombstone, Drop, Rewrite, RewriteWithTombstone, Tombstone};
    #[track_caller]
    fn check_mode(mode: DeleteHandling, row: &str, delete: &[&str]) {
        let plan = plan(item(), &[unwrap(mode)]);
        check(&plan, Read, &[row]);
        check(&plan, Create, &[row]);
        check(&plan, Update, &[row]);
        check(&plan, Delete, delete);
        check(&plan, KeyChange, &[delete, &[row]].concat());
        check(&plan, Truncate, &[]);
    }
    check_mode(Drop, ROW, &[]);
    check_mode(Tombstone, ROW, &[TOMBSTONE]);
    check_mode(DeleteToTombstone, ROW, &[TOMBSTONE]);
    check_mode(Rewrite, NOT_DELETED, &[DELETED]);
    check_mode(RewriteWithTombstone, NOT_DELETED, &[DELETED, TOMBSTONE]);
}

#[test]
fn a_table_without_key_has_no_tombstones() {
    let plan = |mode| plan(without_key(), &[unwrap(mode)]);
    check(&plan(DeleteHandling::Tombstone), ChangeKind::Delete, &[]);
    let rewritten = "item null id,doc,n,note,__deleted=true";
    check(&plan(DeleteHandling::RewriteWithTombstone), ChangeKind::Delete, &[rewritten]);
}

/// Each field of a row's schema: optional (`?`) or not, with its default.
fn row_schema(plan: &TablePlan) -> String {
    let fields = value_schema(plan).fields().iter().map(|field| {
        let optional = if field.schema.optional { "?" } else { "" };
        let default = match &field.schema.default {
            Some(Literal::Int(default)) => format!("={default}"),
            _ => String::new(),
        };
        format!("{}{optional}{default}", field.name)
    });
    fields.collect::<Vec<_>>().join(",")
}

#[test]
fn a_row_that_stands_for_deletes_too_has_room_for_what_they_do_not_know() {
    let plain = plan(item(), &[unwrap(DeleteHandling::Tombstone)]);
    assert_eq!(row_schema(&plain), "id,doc,n=42,note?");
    let schema = value_schema(&plain);
    assert_eq!(schema.name.as_deref(), Some("shop.public.item.Value"));
    assert!(!schema.optional);

    let rewritten = plan(item(), &[unwrap(DeleteHandling::Rewrite)]);
    assert_eq!(row_schema(&rewritten), "id,doc?,n?,note?,__deleted?");
    assert_eq!(value_schema(&rewritten).name, schema.name);

    let mut filled = settings(&[unwrap(DeleteHandling::Rewrite)]);
    filled.before_unsent = BeforeUnsent::Fill;
    let filled = compile(item(), &filled).unwrap();
    assert_eq!(row_schema(&filled), "id,doc,n=42,note?,__deleted?");
}

#[test]
fn all_values_of_a_topic_share_one_schema() {
    let plan = plan(item(), &[unwrap_with(DeleteHandling::Rewrite, "op,before.n,ts_ms", "")]);
    let mut schemas = plan.records().filter_map(|record| record.value.as_ref());
    let first = &schemas.next().unwrap().schema;
    assert!(schemas.all(|shape| std::sync::Arc::ptr_eq(&shape.schema, first)));
}

#[test]
fn parts_of_the_envelope_become_fields() {
    use ChangeKind::{Create, Delete, Update};
    let elements = "op,table,source.ts_ms,ts_us,before.n,before.none,transaction.id,connector:c";
    let plan = plan(item(), &[unwrap_with(DeleteHandling::Rewrite, elements, "")]);
    let added = |deleted: &str, op: &str, before: &str| {
        format!(
            "item id id,doc,n,note,__deleted={deleted},__op={op},__table=item,__source_ts_ms,\
             __ts_us,__before_n{before},__transaction_id=null,__c=test"
        )
    };
    check(&plan, Create, &[&added("false", "c", "=null")]);
    check(&plan, Update, &[&added("false", "u", "=null")]);
    check(&plan, Delete, &[&added("true", "d", "")]);
    let schema = row_schema(&plan);
    assert!(
        schema.ends_with(
            "__op?,__table?,__source_ts_ms?,__ts_us?,__before_n?,__transaction_id?,__c?"
        ),
        "{schema}"
    );
}

fn header<'r>(record: &'r RecordShape, name: &str) -> Option<&'r HeaderShape> {
    record.headers.iter().find(|header| header.name == name)
}

/// The names that the header gives to what was not sent.
fn unavailable(record: &RecordShape) -> Vec<(Leaf, &str)> {
    let Some(header) = header(record, "__tidegate.unavailable") else { return Vec::new() };
    let HeaderValue::Expression(Expression::NamesOfUnsent(names)) = &header.value else {
        panic!("{header:?}");
    };
    let leaves = names.iter().map(|(leaf, _)| leaf.clone()).collect();
    assert_eq!(header.guard, Guard::AnyUnsent(leaves));
    names.iter().map(|(leaf, name)| (leaf.clone(), name.as_str())).collect()
}

#[test]
fn what_a_value_does_not_know_is_named_as_its_fields_are() {
    use ChangeKind::{Create, Delete, KeyChange, Update};
    let steps = [
        unwrap_with(DeleteHandling::Rewrite, "after.doc,before.n", ""),
        replace(Side::Value, &[], &["note"], &[("doc", "text")]),
    ];
    let plan = plan(item(), &steps);
    let after = vec![(Leaf::After(1), "text"), (Leaf::After(1), "__after_doc")];
    assert_eq!(unavailable(&records(&plan, Update)[0]), after);
    let create = &records(&plan, KeyChange)[1];
    assert_eq!(unavailable(create), after);
    let guard = Guard::AnyUnsent(vec![Leaf::After(1), Leaf::After(1)]);
    assert_eq!(header(create, "__tidegate.unmergeable").unwrap().guard, guard);
    assert_eq!(
        unavailable(&records(&plan, Delete)[0]),
        [(Leaf::Before(1), "text"), (Leaf::Before(2), "n"), (Leaf::Before(2), "__before_n")]
    );
    // What is not in the value any more is not named either.
    let steps = [unwrap(DeleteHandling::Tombstone), replace(Side::Value, &["id", "n"], &[], &[])];
    let plan = self::plan(item(), &steps);
    for record in records(&plan, Create).iter().chain(records(&plan, Delete)) {
        assert_eq!(unavailable(record), []);
        assert!(header(record, "__tidegate.unmergeable").is_none());
    }
}

/// The headers beyond the usual ones, in a word each.
fn added_headers(record: &RecordShape) -> Vec<String> {
    let own = record.headers.iter().filter(|header| !header.name.starts_with("__tidegate."));
    own.map(|header| {
        let value = match &header.value {
            HeaderValue::Constant(text) => text.clone(),
            HeaderValue::Shape(Shape { node: Node::Constant(Literal::String(text)), .. }) => {
                text.clone()
            }
            HeaderValue::Shape(Shape { node: Node::Constant(Literal::Null), .. }) => {
                "null".to_owned()
            }
            HeaderValue::Shape(Shape { node: Node::Value { leaf, .. }, .. }) => format!("{leaf:?}"),
            other => format!("{other:?}"),
        };
        format!("{}={value}", header.name)
    })
    .collect()
}

#[test]
fn parts_of_the_envelope_become_headers() {
    use ChangeKind::{Create, Delete, Update};
    let step = || unwrap_with(DeleteHandling::RewriteWithTombstone, "", "op,before.doc,after.doc");
    let key_only = plan(item(), &[step()]);
    let of = |plan: &TablePlan, kind, part: usize| added_headers(&records(plan, kind)[part]);
    assert_eq!(of(&key_only, Create, 0), ["__op=c", "__before_doc=null", "__after_doc=After(1)"]);
    // The source never sends the old document with a delete: no header rather than a null.
    assert_eq!(of(&key_only, Delete, 0), ["__op=d", "__after_doc=null"]);
    assert_eq!(of(&key_only, Delete, 1), ["__op=d"]);
    let full = TableVersion { before_image: BeforeImage::Full, ..item() };
    let full = plan(full, &[step()]);
    assert_eq!(of(&full, Update, 0), ["__op=u", "__before_doc=Before(1)", "__after_doc=After(1)"]);
}

#[test]
fn topics_are_replaced_where_they_match() {
    let plan = plan(item(), &[router(r"shop\.(.*)\.(.*)", "$2-$1"), router("other.*", "x")]);
    check(&plan, ChangeKind::Delete, &["item-public id envelope", "item-public id -"]);
}

/// What a text means to a record.
fn named(record: &RecordShape, text: &str) -> Result<String, Code> {
    let Topic::Routed(route) = &record.topic else { panic!("{record:?}") };
    routed_topic(route, text).map_err(|fault| fault.code())
}

#[test]
fn rows_go_where_a_column_says_and_deletes_follow_them() {
    use ChangeKind::{Create, Delete, KeyChange};
    let full = || TableVersion { before_image: BeforeImage::Full, ..item() };
    let plan = plan(full(), &[routed(DeleteHandling::RewriteWithTombstone, "doc")]);
    let row = |leaf, deleted| format!("{leaf} id id,doc,n,note,__deleted={deleted}");
    let (before, after) = ("Before(1)", "After(1)");
    let delete = [row(before, true), "Before(1) id -".to_owned()];
    check(&plan, Create, &[&row(after, false)]);
    check(&plan, Delete, &delete.each_ref().map(String::as_str));
    check(&plan, KeyChange, &[&delete[0], &delete[1], &row(after, false)]);
    let create = &records(&plan, Create)[0];
    assert_eq!(named(create, "one"), Ok("one".to_owned()));
    assert_eq!(named(create, " "), Ok("shop.public.item".to_owned()));
    assert_eq!(named(create, "no topic"), Err(Code::SchemaIllegalName));
    // A router behind it sees the topic that the text means.
    let steps = [routed(DeleteHandling::Tombstone, "note"), router("(o.*)|(s.*)", "x-$1")];
    let plan = self::plan(full(), &steps);
    let create = &records(&plan, Create)[0];
    assert_eq!(named(create, "one"), Ok("x-one".to_owned()));
    assert_eq!(named(create, "two"), Ok("two".to_owned()));
    assert_eq!(named(create, ""), Ok("x-".to_owned()));
}

#[test]
fn rows_of_which_only_the_key_is_shown_are_found_out_only_if_that_routes_them() {
    let full = || TableVersion { before_image: BeforeImage::Full, ..item() };
    let by = |field| plan(full(), &[routed(DeleteHandling::Tombstone, field)]);
    let refused = by("doc");
    assert_eq!(refused.untellable.as_ref().map(Fault::code), Some(Code::FilterChanged));
    assert!(records(&refused, ChangeKind::FoundOut).is_empty());
    assert!(!records(&refused, ChangeKind::MovedOut).is_empty());
    let dropped = plan(full(), &[routed(DeleteHandling::Drop, "doc")]);
    assert!(dropped.untellable.is_none(), "what is dropped needs no topic");
}

#[test]
fn a_delete_that_could_not_be_routed_is_refused_before_the_first_row() {
    use Code::{SourceReplicaIdentity, TransformUnfit};
    let by = |field| [routed(DeleteHandling::Tombstone, field)];
    check_refused(item(), &by("doc"), SourceReplicaIdentity, "does not send column 'doc'");
    check_refused(item(), &by("none"), TransformUnfit, "no column 'none'");
    check_refused(item(), &by("n"), TransformUnfit, "no text");
    let plan = plan(item(), &[routed(DeleteHandling::Drop, "doc")]);
    check(&plan, ChangeKind::Update, &["After(1) id id,doc,n,note"]);
    let full = || TableVersion { before_image: BeforeImage::Full, ..item() };
    let asked = [routed(DeleteHandling::Drop, "doc"), only(topic("x"), step(Transform::Filter))];
    check_refused(full(), &asked, TransformUnfit, "depends on the row");
    let alone = [
        not(Predicate::RecordIsTombstone, step(Transform::Filter)),
        routed(DeleteHandling::RewriteWithTombstone, "doc"),
    ];
    check_refused(full(), &alone, TransformUnfit, "without its delete");
}

#[test]
fn fields_are_left_out_and_renamed() {
    let steps = [
        unwrap(DeleteHandling::Tombstone),
        replace(Side::Value, &["id", "doc", "n"], &["n"], &[("doc", "text"), ("none", "x")]),
        replace(Side::Key, &[], &[], &[("id", "no")]),
    ];
    let plan = plan(item(), &steps);
    check(&plan, ChangeKind::Create, &["item no id,text"]);
    check(&plan, ChangeKind::Delete, &["item no -"]);
    // On an envelope it is the envelope's own fields that are meant.
    let envelope = self::plan(item(), &[replace(Side::Value, &["after", "op"], &[], &[])]);
    let names: Vec<_> = value_schema(&envelope).fields().iter().map(|f| f.name.as_str()).collect();
    assert_eq!(names, ["after", "op"]);
}

#[test]
fn a_predicate_picks_the_records() {
    use ChangeKind::{Create, Delete, KeyChange};
    let filter = || step(Transform::Filter);
    let delete = |steps: &[Step], expect: &[&str]| check(&plan(item(), steps), Delete, expect);
    let (full, tombstone) = ("item id envelope", TOMBSTONE);
    delete(&[only(Predicate::RecordIsTombstone, filter())], &[full]);
    delete(&[not(Predicate::RecordIsTombstone, filter())], &[tombstone]);
    delete(&[only(topic(r"shop\.public\.item"), filter())], &[]);
    delete(&[only(topic(r"public\.item"), filter())], &[full, tombstone]);
    delete(&[not(topic(r"public\.item"), filter())], &[]);
    // A step sees what the steps before it have made.
    let renamed = [router(".*", "new"), only(topic("new"), unwrap(DeleteHandling::Tombstone))];
    delete(&renamed, &["new id -"]);
    let moved = plan(item(), &[only(has_header("__debezium.oldkey"), filter())]);
    check(&moved, KeyChange, &[full, tombstone]);
    check(&moved, Create, &[full]);
    let kept = plan(item(), &[not(has_header("__debezium.oldkey"), filter())]);
    check(&kept, KeyChange, &[full]);
    check(&kept, Create, &[]);
}

#[test]
fn what_a_row_decides_becomes_a_guard() {
    let filter = |condition: fn(Predicate, Step) -> Step| {
        let step = condition(has_header("__tidegate.unavailable"), step(Transform::Filter));
        let plan = plan(item(), &[step]);
        records(&plan, ChangeKind::Update)[0].guard.clone()
    };
    let incomplete = Guard::AnyUnsent(vec![Leaf::After(1), Leaf::After(3)]);
    assert_eq!(filter(only), incomplete.clone().negated());
    assert_eq!(filter(not), incomplete.clone());
    let twice = [has_header("__tidegate.unavailable"), has_header("__tidegate.unmergeable")]
        .map(|predicate| only(predicate, step(Transform::Filter)));
    let plan = plan(item(), &twice);
    let guard = &records(&plan, ChangeKind::KeyChange)[2].guard;
    assert_eq!(*guard, Guard::All(vec![incomplete.clone().negated(), incomplete.negated()]));
}

#[track_caller]
fn check_refused(version: TableVersion, steps: &[Step], code: Code, expect: &str) {
    let fault = try_plan(version, steps).unwrap_err();
    assert_eq!(fault.code(), code, "{fault}");
    assert!(fault.message().starts_with("transforms.t: "), "{fault}");
    assert!(fault.message().contains(expect), "{fault}");
    assert_eq!(fault.place().table.as_deref(), Some("public.item"));
}

#[test]
fn what_does_not_fit_a_table_is_refused_before_its_first_row() {
    use Code::{SchemaIllegalName, TransformUnfit};
    let tombstone = DeleteHandling::Tombstone;
    let depends = only(has_header("__tidegate.unavailable"), unwrap(tombstone));
    check_refused(item(), &[depends], TransformUnfit, "cannot depend on that");
    let unknown = unwrap_with(tombstone, "gtid", "");
    check_refused(item(), &[unknown], TransformUnfit, "source block has no field 'gtid'");
    let unknown = unwrap_with(tombstone, "", "transaction.gtid");
    check_refused(item(), &[unknown], TransformUnfit, "transaction block has no field 'gtid'");
    let image = unwrap_with(tombstone, "", "after:row");
    check_refused(item(), &[image], TransformUnfit, "cannot be a header");
    let again = unwrap_with(tombstone, "op,op", "");
    check_refused(item(), &[again], SchemaIllegalName, "a column '__op'");
    let apart = [replace(Side::Value, &[], &["after"], &[]), unwrap(tombstone)];
    check_refused(item(), &apart, TransformUnfit, "no field 'after'");
    let twins = replace(Side::Value, &[], &[], &[("before", "after")]);
    check_refused(item(), &[twins], SchemaIllegalName, "would be called 'after'");
    let twins = try_plan(item(), &[replace(Side::Value, &[], &[], &[("before", "after")])]);
    let setting = |plan: Result<_, Fault>| plan.map(drop).unwrap_err().place().setting.clone();
    assert_eq!(setting(twins).as_deref(), Some("transforms.t.renames"));
    let keyless = replace(Side::Key, &[], &["id"], &[]);
    assert_eq!(
        setting(try_plan(item(), std::slice::from_ref(&keyless))).as_deref(),
        Some("transforms.t.type")
    );
    check_refused(item(), &[keyless], TransformUnfit, "no field of the key");
    for (topic, expect) in [("a b", "transforms: 'a b' is no name"), ("", "transforms: '' is no")] {
        let fault = try_plan(item(), &[router(".*", topic)]).unwrap_err();
        assert_eq!(fault.code(), SchemaIllegalName);
        assert!(fault.message().starts_with(expect), "{fault}");
        assert_eq!(fault.place().table.as_deref(), Some("public.item"));
    }
    // What a later step makes legal is legal.
    plan(item(), &[router(".*", "a b"), router("(.) (.)", "$1-$2")]);
}

#[test]
fn what_could_never_fit_is_known_without_a_table() {
    let unwrap = || unwrap(DeleteHandling::Tombstone);
    let filter = || step(Transform::Filter);
    assert!(filter().check().unwrap_err().contains("every record"));
    assert!(only(has_header("__tidegate.unmergeable"), unwrap()).check().is_err());
    assert_eq!(only(has_header("__tidegate.unmergeable"), filter()).check(), Ok(()));
    assert_eq!(only(has_header("__debezium.oldkey"), unwrap()).check(), Ok(()));
    assert_eq!(unwrap().check(), Ok(()));
}

#[test]
fn every_step_changes_the_fingerprint() {
    use DeleteHandling::{Drop, Tombstone};
    let lists: &[&[Step]] = &[
        &[],
        &[unwrap(Tombstone)],
        &[unwrap(Drop)],
        &[unwrap_with(Tombstone, "op", "")],
        &[unwrap_with(Tombstone, "", "op")],
        &[unwrap_with(Tombstone, "op:o", "")],
        &[routed(Tombstone, "doc")],
        &[unwrap(Tombstone), unwrap(Tombstone)],
        &[only(Predicate::RecordIsTombstone, unwrap(Tombstone))],
        &[not(Predicate::RecordIsTombstone, unwrap(Tombstone))],
        &[only(topic("a"), unwrap(Tombstone))],
        &[only(topic("b"), unwrap(Tombstone))],
        &[only(has_header("a"), unwrap(Tombstone))],
        &[router("a", "b")],
        &[router("a", "c")],
        &[router("b", "b")],
        &[replace(Side::Key, &["a"], &[], &[])],
        &[replace(Side::Value, &["a"], &[], &[])],
        &[replace(Side::Value, &[], &["a"], &[])],
        &[replace(Side::Value, &[], &[], &[("a", "b")])],
        &[only(Predicate::RecordIsTombstone, step(Transform::Filter))],
    ];
    let mut seen = std::collections::HashSet::new();
    for steps in lists {
        assert!(seen.insert(settings(steps).fingerprint()), "{steps:?}");
    }
}

/// Every place in transformed records that reads a column, with what happens there if it was not
/// sent: keys, headers and topics refuse, and only a copy into a field of the value may go on – and
/// then the header names that field.
#[test]
fn every_reader_of_an_unavailable_value_is_accounted_for() {
    let steps = [
        unwrap_with(
            DeleteHandling::RewriteWithTombstone,
            "before.doc,after.doc,before,after",
            "before.doc,after.doc,source",
        ),
        replace(Side::Value, &[], &["note"], &[("doc", "text")]),
        replace(Side::Key, &[], &[], &[("id", "no")]),
        only(has_header("__tidegate.unavailable"), step(Transform::Filter)),
    ];
    for image in [BeforeImage::Full, BeforeImage::Key(vec![0]), BeforeImage::None] {
        let mut steps = steps.to_vec();
        if let (BeforeImage::Full, Transform::ExtractNewRecordState(unwrap)) =
            (&image, &mut steps[0].transform)
        {
            unwrap.route_by_field = Some("note".to_owned());
        }
        let version = TableVersion { before_image: image, ..item() };
        let plan = plan(version, &steps);
        for record in plan.records() {
            let mut going_on = Vec::new();
            if let Topic::Routed(route) = &record.topic {
                refuses(&route.by, &mut Vec::new(), false);
            }
            record.key.iter().for_each(|shape| refuses(shape, &mut Vec::new(), false));
            record.value.iter().for_each(|shape| refuses(shape, &mut going_on, true));
            for header in &record.headers {
                if let HeaderValue::Shape(shape) = &header.value {
                    refuses(shape, &mut Vec::new(), false);
                }
            }
            let named: Vec<_> = unavailable(record).into_iter().map(|(leaf, _)| leaf).collect();
            assert_eq!(named, going_on, "{record:?}");
        }
    }
}

/// Collects the copies that go on without the value; where there may be none, fails.
#[track_caller]
fn refuses(shape: &Shape, going_on: &mut Vec<Leaf>, may_copy: bool) {
    match &shape.node {
        Node::Struct(shapes) => {
            shapes.iter().for_each(|shape| refuses(shape, going_on, may_copy));
        }
        Node::Column { leaf, unsent, .. } => {
            assert!(may_copy, "{shape:?}");
            if !matches!(unsent, Unsent::Refuse(_)) {
                going_on.push(leaf.clone());
            }
        }
        Node::Value { .. } | Node::Constant(_) => {}
    }
}
