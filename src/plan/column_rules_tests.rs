//! Which columns records show, and what stands for what they hide.

use regex::Regex;

use super::testing::{column, compile, key_schema, or, required, table, value_schema};
use super::{ColumnRules, ColumnTreatment, PlanSettings, Treatment};
use crate::change::{BeforeImage, ChangeKind, ColumnType, DeclaredType, TableVersion};
use crate::error::{Code, Fault};
use crate::record::{Guard, HashAlgorithm, HashInput, Hiding, Kind, Node, Render};

fn person() -> TableVersion {
    let mut version = table(
        "person",
        vec![
            required("id", ColumnType::Int32),
            required("name", ColumnType::Text),
            or("none", column("notes", ColumnType::Text)),
            column("born", ColumnType::Date),
            column("tags", ColumnType::Array(Box::new(ColumnType::Text))),
            column("code", ColumnType::Uuid),
        ],
    );
    let declared = DeclaredType { name: "VARCHAR".to_owned(), length: 20, scale: Some(0) };
    version.columns[1].declared = declared;
    version
}

fn patterns(texts: &[&str]) -> Vec<Regex> {
    texts.iter().map(|text| Regex::new(&format!("^(?:{text})$")).unwrap()).collect()
}

fn treat(columns: &[&str], treatment: Treatment) -> ColumnRules {
    let key = "column.rule.with.salt.s3cret".to_owned();
    let treatments = vec![ColumnTreatment { key, columns: patterns(columns), treatment }];
    ColumnRules { treatments, ..ColumnRules::default() }
}

fn settings(columns: ColumnRules) -> PlanSettings {
    PlanSettings { columns, ..PlanSettings::new("shop") }
}

fn hash() -> Treatment {
    let (algorithm, input) = (HashAlgorithm::Sha256, HashInput::Utf8);
    Treatment::Hash { algorithm, salt: b"s3cret".to_vec(), input }
}

#[track_caller]
fn check_shown(rules: ColumnRules, key: &[&str], value: &[&str]) {
    let plan = compile(person(), &settings(rules)).unwrap();
    let names = |schema: &crate::record::Schema| {
        schema.fields().iter().map(|field| field.name.clone()).collect::<Vec<_>>()
    };
    assert_eq!(names(key_schema(&plan).unwrap()), key);
    let envelope = value_schema(&plan);
    for image in [0, 1] {
        assert_eq!(names(&envelope.fields()[image].schema), value);
    }
    for record in plan.records().filter_map(|record| record.value.as_ref()) {
        let Node::Struct(fields) = &record.node else { panic!("{record:?}") };
        for image in &fields[..2] {
            if let Node::Struct(columns) = &image.node {
                assert_eq!(columns.len(), value.len());
                assert_eq!(columns.len(), image.schema.fields().len());
            }
        }
    }
}

#[test]
fn a_column_left_out_is_not_in_values_and_stays_in_the_key() {
    let rules = |include, exclude| ColumnRules { include, exclude, ..ColumnRules::default() };
    check_shown(
        rules(Some(patterns(&["public.person.(name|notes)"])), None),
        &["id"],
        &["name", "notes"],
    );
    check_shown(
        rules(None, Some(patterns(&["public.person.id", "public.person.[bnt].*"]))),
        &["id"],
        &["code"],
    );
    check_shown(rules(None, Some(patterns(&[".*"]))), &["id"], &[]);
}

#[test]
fn what_stands_for_a_text_is_a_plain_string_and_says_so() {
    let column = |treatment, index: usize| {
        let plan = compile(
            person(),
            &settings(treat(&["public.person.(name|notes|tags|code)"], treatment)),
        );
        let plan = plan.unwrap();
        let create = &plan.kinds[ChangeKind::Create as usize][0];
        let Node::Struct(fields) = &create.value.as_ref().unwrap().node else { panic!() };
        let Node::Struct(columns) = &fields[1].node else { panic!() };
        let Node::Column { render, .. } = &columns[index].node else { panic!() };
        ((*columns[index].schema).clone(), render.clone())
    };
    let (schema, render) = column(Treatment::Mask(3), 5);
    assert_eq!((schema.kind, schema.name), (Kind::String, None));
    assert_eq!(schema.parameters, [("masked".to_owned(), "true".to_owned())]);
    assert_eq!(render, Render::Hidden(Hiding::Mask("***".into())));
    let (schema, render) = column(Treatment::Truncate(3), 4);
    assert_eq!(schema.parameters, [("truncateLength".to_owned(), "3".to_owned())]);
    assert!(matches!(render, Render::Array { element, .. }
        if *element == Render::Hidden(Hiding::Truncate(3))));
    let digits = |index| match column(hash(), index) {
        (_, Render::Hidden(Hiding::Hash(hash))) => hash.digits,
        (_, other) => panic!("{other:?}"),
    };
    assert_eq!((digits(1), digits(2)), (Some(20), None));
    let (schema, _) = column(hash(), 2);
    assert!(schema.default.is_some(), "{schema:?}");
}

#[track_caller]
fn check_refused(version: TableVersion, rules: ColumnRules, column: &str, words: &str) {
    let fault: Fault = compile(version, &settings(rules)).unwrap_err();
    assert_eq!(fault.code(), Code::ColumnRuleUnfit, "{fault}");
    assert_eq!(fault.place().column.as_deref(), Some(column));
    let text = fault.to_string();
    assert!(text.contains(words) && !text.contains("s3cret"), "{text}");
}

#[test]
fn a_rule_that_would_not_hide_refuses_the_table() {
    let by_name = || TableVersion { key: vec![1], before_image: BeforeImage::Full, ..person() };
    check_refused(
        person(),
        treat(&["public.person.born"], Treatment::Mask(1)),
        "born",
        "is for text",
    );
    check_refused(
        by_name(),
        treat(&["public.person.name"], Treatment::Mask(1)),
        "name",
        "key shows it",
    );
    check_refused(by_name(), treat(&["public.person.name"], hash()), "name", "key shows it");
    let truncated = settings(treat(&["public.person.name"], Treatment::Truncate(1)));
    assert!(compile(by_name(), &truncated).is_ok());
    let mut twice = treat(&["public.person.name"], hash());
    twice.treatments.extend(treat(&[".*name"], Treatment::Mask(2)).treatments);
    check_refused(person(), twice, "name", "both");
}

#[test]
fn source_types_are_told_by_column_or_by_type_and_never_in_keys() {
    let told = |rules| {
        let plan = compile(person(), &settings(rules)).unwrap();
        let envelope = value_schema(&plan);
        let key = key_schema(&plan).unwrap();
        assert!(key.fields().iter().all(|field| field.schema.parameters.is_empty()));
        let columns = envelope.fields()[1].schema.fields().to_vec();
        let is_told = |parameters: &[(String, String)]| {
            parameters.iter().any(|(name, _)| name.starts_with("__debezium.source.column."))
        };
        let told = columns.iter().filter(|field| is_told(&field.schema.parameters));
        told.map(|field| field.name.clone()).collect::<Vec<_>>()
    };
    let by_column = |list: &[&str]| ColumnRules {
        propagate_columns: Some(patterns(list)),
        ..ColumnRules::default()
    };
    let by_type = |list: &[&str]| ColumnRules {
        propagate_types: Some(patterns(list)),
        ..ColumnRules::default()
    };
    assert_eq!(told(by_column(&["public.person.(id|born)"])), ["id", "born"]);
    assert_eq!(told(by_type(&["VARCHAR"])), ["name"]);
    assert_eq!(told(by_type(&["public.person.VARCHAR"])), ["name"]);
}

#[test]
fn updates_without_a_change_are_left_out_only_where_that_can_be_seen() {
    let guard = |version| {
        let settings = PlanSettings {
            skip_unchanged: true,
            ..settings(ColumnRules {
                exclude: Some(patterns(&["public.person.notes"])),
                ..ColumnRules::default()
            })
        };
        let plan = compile(version, &settings).unwrap();
        assert!(
            plan.kinds[ChangeKind::KeyChange as usize]
                .iter()
                .all(|record| record.guard == Guard::Always)
        );
        plan.kinds[ChangeKind::Update as usize][0].guard.clone()
    };
    let full = TableVersion { before_image: BeforeImage::Full, ..person() };
    assert_eq!(guard(full), Guard::AnyChanged(vec![0, 1, 3, 4, 5]));
    assert_eq!(guard(person()), Guard::Always);
}

#[test]
fn a_rule_that_names_no_column_is_idle() {
    let columns = ["public.person.id".to_owned(), "public.person.name".to_owned()];
    let mut rules = treat(&["public.person.name", "public.person.nmae"], Treatment::Mask(3));
    rules.exclude = Some(patterns(&["public.person.id", "person.id"]));
    rules.include = Some(patterns(&[".*"]));
    rules.propagate_columns = Some(patterns(&["public.person.i."]));
    let idle: Vec<_> =
        rules.idle(&columns).into_iter().map(|(key, one)| (key, one.as_str())).collect();
    let expected = [
        ("column.exclude.list", "^(?:person.id)$"),
        ("column.rule.with", "^(?:public.person.nmae)$"),
    ];
    assert_eq!(idle, expected, "and the salt is not shown");
    assert!(ColumnRules::default().idle(&[]).is_empty());
}
