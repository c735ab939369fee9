//! Transforms and predicates in whole configurations.

use super::tests::{check_faults, parse};
use crate::plan::{DeleteHandling, Predicate, Side, Step, Transform};

/// One of each class.
pub(super) const ALL: &[(&str, &str)] = &[
    ("transforms", "unwrap, route, key, value, drop"),
    ("transforms.unwrap.type", "io.debezium.transforms.ExtractNewRecordState"),
    ("transforms.unwrap.route.by.field", "tenant"),
    ("transforms.route.type", "org.apache.kafka.connect.transforms.RegexRouter"),
    ("transforms.route.regex", r"shop\.(.*)"),
    ("transforms.route.replacement", "$1"),
    ("transforms.key.type", "org.apache.kafka.connect.transforms.ReplaceField$Key"),
    ("transforms.key.renames", "id:no"),
    ("transforms.value.type", "org.apache.kafka.connect.transforms.ReplaceField$Value"),
    ("transforms.value.exclude", "secret"),
    ("transforms.drop.type", "org.apache.kafka.connect.transforms.Filter"),
    ("transforms.drop.predicate", "moved"),
    ("transforms.drop.negate", "true"),
    ("predicates", "moved,gone,mine"),
    ("predicates.moved.type", "org.apache.kafka.connect.transforms.predicates.HasHeaderKey"),
    ("predicates.moved.name", "__debezium.oldkey"),
    ("predicates.gone.type", "RecordIsTombstone"),
    ("predicates.mine.type", "TopicNameMatches"),
    ("predicates.mine.pattern", r"shop\.mine\..*"),
];

fn steps(more: &[(&str, &str)]) -> Vec<Step> {
    parse(more).plan.transforms
}

#[test]
fn each_class_is_read_with_its_options() {
    let steps = steps(ALL);
    let names: Vec<_> = steps.iter().map(|step| step.name.as_str()).collect();
    assert_eq!(names, ["unwrap", "route", "key", "value", "drop"]);
    let Transform::ExtractNewRecordState(unwrap) = &steps[0].transform else { panic!() };
    assert_eq!(unwrap.deletes, DeleteHandling::Tombstone);
    assert_eq!(unwrap.route_by_field.as_deref(), Some("tenant"));
    assert!(matches!(steps[1].transform, Transform::RegexRouter(_)));
    let Transform::ReplaceField(key) = &steps[2].transform else { panic!() };
    assert_eq!((key.side, &*key.renames), (Side::Key, &[("id".to_owned(), "no".to_owned())][..]));
    let Transform::ReplaceField(value) = &steps[3].transform else { panic!() };
    assert_eq!((value.side, &*value.exclude), (Side::Value, &["secret".to_owned()][..]));
    let condition = steps[4].condition.as_ref().unwrap();
    assert!(condition.negate && matches!(condition.predicate, Predicate::HasHeaderKey(_)));
    assert!(steps[..4].iter().all(|step| step.condition.is_none()));
}

#[test]
fn a_validation_answer_offers_the_options_of_each_class() {
    let config = super::tests::config(ALL);
    let answer = super::validate(&config, &super::tests::worker_of(""));
    assert_eq!(answer.error_count, 0);
    let names: Vec<_> = answer.configs.iter().map(|info| info.value.name.as_str()).collect();
    let count = |name: &str| names.iter().filter(|known| **known == name).count();
    for offered in [
        "transforms.unwrap.type",
        "transforms.unwrap.add.fields",
        "transforms.drop.predicate",
        "transforms.key.include",
        "predicates.mine.pattern",
    ] {
        assert_eq!(count(offered), 1, "{offered}");
    }
    for not_offered in ["transforms.key.regex", "transforms.unwrap.drop.fields.from.key"] {
        assert_eq!(count(not_offered), 0, "{not_offered}");
    }
}

#[test]
fn a_configuration_without_transforms_has_none() {
    assert!(steps(&[("transforms", " ")]).is_empty());
}

#[test]
fn parts_of_the_envelope_get_their_names() {
    let names = |more: &[(&str, &str)]| {
        let unwrap = [
            ("transforms", "u"),
            ("transforms.u.type", "ExtractNewRecordState"),
            ("transforms.u.add.fields", "op, source.lsn,table:tbl"),
            ("value.converter", "JsonConverter"),
        ];
        let steps = steps(&[&unwrap, more].concat());
        let Transform::ExtractNewRecordState(unwrap) = &steps[0].transform else { panic!() };
        let names = unwrap.add_fields.iter().map(|field| field.name().to_owned());
        names.collect::<Vec<_>>()
    };
    assert_eq!(names(&[]), ["__op", "__source_lsn", "__tbl"]);
    assert_eq!(names(&[("transforms.u.add.fields.prefix", "")]), ["op", "source_lsn", "tbl"]);
    assert_eq!(
        names(&[("transforms.u.add.fields.prefix", "x-")]),
        ["x-op", "x-source_lsn", "x-tbl"]
    );
}

/// One transform `t` of a class, with these options.
#[track_caller]
fn check(class: &str, options: &[(&str, &str)], expect: &[&str]) {
    let class = [("transforms", "t"), ("transforms.t.type", class)];
    check_faults(&[&class, options].concat(), expect);
}

#[test]
fn what_names_nothing_is_a_fault_of_its_key() {
    check_faults(
        &[("transforms", "a,b,a")],
        &[
            "TG-E-CONFIG-INVALID: transforms 'a,b,a': has 'a' twice",
            "TG-E-CONFIG-INVALID: transforms.a.type: must be given",
            "TG-E-CONFIG-INVALID: transforms.b.type: must be given",
        ],
    );
    check(
        "RegexRouter",
        &[
            ("transforms.t.regex", "a"),
            ("transforms.t.replacement", ""),
            ("transforms.t.predicate", "gnoe"),
            ("transforms.x.regex", "a"),
            ("predicates", "gone"),
            ("predicates.gone.type", "RecordIsTombstone"),
            ("predicates.gone.pattern", "a"),
            ("predicates.mine.pattern", "a"),
        ],
        &[
            "TG-E-CONFIG-UNKNOWN-KEY: predicates.gone.pattern: RecordIsTombstone has no option pattern",
            "TG-E-CONFIG-INVALID: predicates.mine.pattern: belongs to no name in predicates",
            "TG-E-CONFIG-INVALID: transforms.t.predicate 'gnoe': is not in predicates; did you mean gone?",
            "TG-E-CONFIG-INVALID: transforms.x.regex: belongs to no name in transforms",
        ],
    );
    check_faults(
        &[("transforms.t.type", "RegexRouter")],
        &["TG-E-CONFIG-INVALID: transforms.t.type: belongs to no name in transforms"],
    );
}

#[test]
fn a_transform_that_is_not_there_is_refused_by_its_name() {
    check(
        "org.apache.kafka.connect.transforms.Cast$Value",
        &[("transforms.t.spec", "a:string")],
        &["TG-E-CONFIG-UNSUPPORTED: transforms.t.type \
           'org.apache.kafka.connect.transforms.Cast$Value': \
           org.apache.kafka.connect.transforms.Cast$Value is not supported: it is not built yet"],
    );
    let faults = parse_faults(&[("transforms", "t"), ("transforms.t.type", "com.example.Mine")]);
    let [fault] = &*faults else { panic!("{faults:?}") };
    assert!(
        fault.contains("must be one of io.debezium.transforms.ExtractNewRecordState,"),
        "{fault}"
    );
    assert!(!fault.contains("Cast"), "{fault}");
}

fn parse_faults(more: &[(&str, &str)]) -> Vec<String> {
    let config = super::tests::config(more);
    let faults = super::TypedConnector::parse(&config, &super::tests::worker_of(""));
    faults.map(drop).unwrap_err().iter().map(ToString::to_string).collect()
}

#[test]
fn options_are_checked_by_class() {
    check(
        "RegexRouter",
        &[("transforms.t.regex", "(a"), ("transforms.t.include", "a")],
        &[
            "TG-E-CONFIG-INVALID: transforms.t.regex '(a': is no regular expression: unclosed group",
            "TG-E-CONFIG-INVALID: transforms.t.replacement: must be given",
            "TG-E-CONFIG-UNKNOWN-KEY: transforms.t.include: RegexRouter has no option include",
        ],
    );
    check(
        "RegexRouter",
        &[("transforms.t.regex", "a"), ("transforms.t.replacement", "$1")],
        &[
            "TG-E-CONFIG-INVALID: transforms.t.replacement '$1': names a group 1 that the expression \
           does not have",
        ],
    );
    check(
        "ReplaceField$Value",
        &[("transforms.t.renames", "a:b,c,d:e-f"), ("transforms.t.blacklist", "a")],
        &[
            "TG-E-CONFIG-UNSUPPORTED: transforms.t.blacklist 'a': not supported: its name is exclude",
            "TG-E-CONFIG-INVALID: transforms.t.renames 'a:b,c,d:e-f': 'c' is not of the form old:new",
            "TG-E-CONFIG-INVALID: transforms.t.renames 'a:b,c,d:e-f': 'e-f' is not a legal name of a \
             field in Avro",
        ],
    );
    check(
        "Filter",
        &[],
        &["TG-E-CONFIG-INVALID: transforms.t.predicate: without a predicate it would leave out \
           every record"],
    );
    check(
        "ExtractNewRecordState",
        &[
            ("transforms.t.negate", "true"),
            ("transforms.t.delete.tombstone.handling.mode", "none"),
            ("transforms.t.drop.tombstones", "false"),
            ("transforms.t.add.feilds", "op"),
        ],
        &[
            "TG-E-CONFIG-INVALID: transforms.t.delete.tombstone.handling.mode 'none': must be one of \
             drop, tombstone, rewrite, rewrite-with-tombstone, delete-to-tombstone",
            "TG-E-CONFIG-UNSUPPORTED: transforms.t.drop.tombstones 'false': not supported: Debezium 3 \
             has delete.tombstone.handling.mode in its place",
            "TG-E-CONFIG-INVALID: transforms.t.negate 'true': needs a predicate",
            "TG-E-CONFIG-UNKNOWN-KEY: transforms.t.add.feilds: ExtractNewRecordState has no option \
             add.feilds; did you mean add.fields?",
        ],
    );
}

#[test]
fn references_to_the_envelope_are_checked_against_the_source() {
    check(
        "ExtractNewRecordState",
        &[
            ("transforms.t.add.fields", "op,gtid,op,row.a,before.any,source.db:d-b"),
            ("transforms.t.add.headers", "after,transaction.gtid,source.db:d-b"),
        ],
        &[
            "TG-E-CONFIG-INVALID: transforms.t.add.fields 'op,gtid,op,row.a,before.any,source.db:d-b': \
             the source block has no field 'gtid'",
            "TG-E-CONFIG-INVALID: transforms.t.add.fields 'op,gtid,op,row.a,before.any,source.db:d-b': \
             has '__op' twice",
            "TG-E-CONFIG-INVALID: transforms.t.add.fields 'op,gtid,op,row.a,before.any,source.db:d-b': \
             an envelope has no block 'row' (there are before, after, source, transaction)",
            "TG-E-CONFIG-INVALID: transforms.t.add.fields 'op,gtid,op,row.a,before.any,source.db:d-b': \
             '__d-b' is not a legal name of a field in Avro",
            "TG-E-CONFIG-INVALID: transforms.t.add.headers 'after,transaction.gtid,source.db:d-b': \
             the transaction block has no field 'gtid'",
            "TG-E-CONFIG-INVALID: transforms.t.add.headers 'after,transaction.gtid,source.db:d-b': \
             a whole image of a row cannot be a header",
        ],
    );
}

#[test]
fn a_schema_never_depends_on_values() {
    let unavailable = [
        ("transforms.t.predicate", "p"),
        ("predicates", "p"),
        ("predicates.p.type", "HasHeaderKey"),
        ("predicates.p.name", "__tidegate.unavailable"),
    ];
    let faults = parse_faults(
        &[&[("transforms", "t"), ("transforms.t.type", "ExtractNewRecordState")], &unavailable[..]]
            .concat(),
    );
    let [fault] = &*faults else { panic!("{faults:?}") };
    assert!(fault.starts_with("TG-E-CONFIG-INVALID: transforms.t.predicate 'p': "), "{fault}");
    assert!(fault.contains("cannot depend on that"), "{fault}");
    steps(&[&[("transforms", "t"), ("transforms.t.type", "Filter")], &unavailable[..]].concat());
    check(
        "ExtractNewRecordState",
        &[("transforms.t.drop.fields.header.name", "h")],
        &[
            "TG-E-CONFIG-UNSUPPORTED: transforms.t.drop.fields.header.name 'h': not supported: the fields \
           of a record would depend on its headers' values; ReplaceField leaves fields out by name",
        ],
    );
}
