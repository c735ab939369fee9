//! Tests over all tables, and over whole configurations.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use super::key::{KeyDef, Presence, Status};
use super::*;
use crate::convert::{Converter, DecimalFormat, HeaderConverter};
use crate::error::Code;
use crate::plan::{Extensions, Incomplete, NameAdjustment, Operation, OperationSet, TimeMode};
use crate::registry::{Authentication, Lookup, SubjectNaming};
use crate::sources::{self, SourceSettings};

const WORKER: &str = "bootstrap.servers=localhost:9092\n\
                      key.converter.schema.registry.url=http://localhost:8081\n\
                      value.converter.schema.registry.url=http://localhost:8081\n";

const MINIMAL: &[(&str, &str)] = &[
    ("name", "orders"),
    ("connector.class", "io.debezium.connector.postgresql.PostgresConnector"),
    ("topic.prefix", "shop"),
    ("database.hostname", "db"),
    ("database.user", "cdc"),
    ("database.password", "S3cret!1"),
    ("database.dbname", "orders"),
];

fn environment() -> Environment {
    Arc::new(|name| (name == "SECRET").then(|| "S3cret!1".to_owned()))
}

pub(super) fn worker_of(more: &str) -> WorkerConfig {
    WorkerConfig::parse(&format!("{WORKER}{more}"), &environment()).expect("legal")
}

pub(super) fn config(more: &[(&str, &str)]) -> ConnectorConfig {
    let pairs = MINIMAL.iter().chain(more);
    pairs.map(|(key, value)| ((*key).to_owned(), Some((*value).to_owned()))).collect()
}

#[track_caller]
pub(super) fn parse(more: &[(&str, &str)]) -> TypedConnector {
    TypedConnector::parse(&config(more), &worker_of(""))
        .unwrap_or_else(|faults| panic!("{faults:?}"))
}

#[track_caller]
pub(super) fn check_faults(more: &[(&str, &str)], expect: &[&str]) {
    let faults =
        TypedConnector::parse(&config(more), &worker_of("")).map(drop).expect_err("faults");
    let faults: Vec<_> = faults.iter().map(ToString::to_string).collect();
    assert_eq!(faults, expect);
}

fn catalogues() -> Vec<Catalogue> {
    let mut all: Vec<_> = sources::CLASSES.iter().map(connector_catalogue).collect();
    all.push(worker_catalogue());
    all
}

#[test]
fn a_rewrite_is_refused_only_where_it_can_be_known() {
    for action in ["refuse", "resnapshot"] {
        let message = format!(
            "TG-E-CONFIG-INVALID: schema.rewrite.action '{action}': it needs \
             ddl.capture=event_trigger: without it a rewrite is suspected at best, never known"
        );
        check_faults(&[("schema.rewrite.action", action)], &[&message]);
        let both = [("schema.rewrite.action", action), ("ddl.capture", "event_trigger")];
        assert!(TypedConnector::parse(&config(&both), &worker_of("")).is_ok());
    }
    check_faults(
        &[("schema.rewrite.acknowledged", "1:s:7:0/10:2")],
        &["TG-E-CONFIG-UNSUPPORTED: schema.rewrite.acknowledged '1:s:7:0/10:2': not \
           supported: rewrites are acknowledged in schema.changes.acknowledged, like all changes"],
    );
}

#[test]
fn every_table_is_sound() {
    for catalogue in catalogues() {
        let mut seen = BTreeSet::new();
        for def in catalogue.keys() {
            assert!(seen.insert(def.name), "{} twice", def.name);
            for name in def.names() {
                let found = catalogue.find(&name).map(|found| found.name);
                assert_eq!(found, Some(def.name), "{name} is hidden by another definition");
            }
            if let Some(default) = def.default() {
                assert_eq!(def.kind.check(default), Ok(()), "{}", def.name);
                assert_eq!(def.rule.check(default), Ok(()), "{}", def.name);
            }
            let sentence = match def.status {
                Status::Supported => def.doc.trim_end_matches('.'),
                Status::NoEffect(why) | Status::Refused(why) => why,
            };
            assert!(!sentence.ends_with('.') && !sentence.is_empty(), "{}", def.name);
            let is_required = def.presence == Presence::Required;
            assert!(!is_required || def.status == Status::Supported, "{}", def.name);
            assert!(!is_required || !def.is_family(), "{}", def.name);
        }
    }
}

/// A key that is declared to be carried out and is read by nobody would be accepted and ignored.
#[test]
fn every_supported_key_is_read() {
    let supported = |catalogue: &Catalogue| -> BTreeSet<_> {
        let keys = catalogue.keys().filter(|def| def.status == Status::Supported);
        keys.map(|def| def.name).collect()
    };
    for class in sources::CLASSES {
        let converters = [("key.converter", "Avro"), ("value.converter", "Json")];
        let config = config(&[&converters[..], transform_tests::ALL].concat());
        let (values, _) = connector::check(&config, &worker_of(""));
        assert_eq!(values.names_read(), supported(&connector_catalogue(class)));
    }
    assert_eq!(worker::names_read(WORKER, &environment()), supported(&worker_catalogue()));
}

fn fixture(text: &'static str) -> impl Iterator<Item = (&'static str, &'static str)> {
    text.lines().filter(|line| !line.starts_with('#')).map(|line| {
        let mut fields = line.split('\t');
        (fields.next().unwrap_or_default(), fields.nth(1).unwrap_or_default())
    })
}

#[test]
fn every_key_of_debezium_and_connect_is_known() {
    let connector = connector_catalogue(&sources::CLASSES[0]);
    let known = fixture(include_str!("../../tests/fixtures/config/debezium-postgres.tsv"))
        .chain(fixture(include_str!("../../tests/fixtures/config/connect-source.tsv")));
    let mut unknown: Vec<_> = known.filter(|(key, _)| connector.find(key).is_none()).collect();
    let worker = worker_catalogue();
    let known = fixture(include_str!("../../tests/fixtures/config/connect-worker.tsv"));
    unknown.extend(known.filter(|(key, _)| worker.find(key).is_none()));
    for (option, _) in fixture(include_str!("../../tests/fixtures/config/converters.tsv")) {
        for side in ["key", "value"] {
            let key = format!("{side}.converter.{option}");
            assert!(connector.find(&key).is_some() && worker.find(&key).is_some(), "{key}");
        }
    }
    assert_eq!(unknown, []);
}

#[test]
fn debeziums_own_defaults_are_accepted_when_spelled_out() {
    // Where Debezium's default loses something or asks for what is not built, it is refused.
    const REFUSED: [&str; 3] =
        ["plugin.name", "event.converting.failure.handling.mode", "custom.sanitize.pattern"];
    // Zero is no bound there, and there is always a bound here.
    const BOUNDED: [&str; 1] = ["max.queue.size.in.bytes"];
    let catalogue = connector_catalogue(&sources::CLASSES[0]);
    for (key, default) in fixture(include_str!("../../tests/fixtures/config/debezium-postgres.tsv"))
    {
        let def: &KeyDef = catalogue.find(key).expect("known");
        let answer = if default.is_empty() { Ok(()) } else { def.check(default) };
        let is_different = REFUSED.contains(&key) || BOUNDED.contains(&key);
        assert_eq!(answer.is_err(), is_different, "{key}={default}: {answer:?}");
    }
}

#[test]
fn the_smallest_configuration_is_enough() {
    let connector = parse(&[]);
    assert_eq!(connector.name, "orders");
    assert_eq!(connector.notes, []);
    assert_eq!(connector.key.converter, Converter::Avro);
    let registry = connector.value.registry.expect("the worker's");
    assert_eq!(registry.addresses[0].to_string(), "http://localhost:8081");
    assert_eq!(registry.retry_for, Some(Duration::from_secs(300)));
    assert_eq!(connector.plan.topic_prefix, "shop");
    assert_eq!(connector.plan.skipped, OperationSet::EMPTY);
    assert_eq!(connector.plan.field_names, NameAdjustment::Avro);
    assert_eq!(connector.plan.schema_names, NameAdjustment::None);
    assert_eq!(connector.plan.extensions, Extensions::Headers);
    assert_eq!(connector.schema_changes_topic, "shop.schema-changes");
}

#[test]
fn bounds_and_names_have_their_defaults() {
    let connector = parse(&[]);
    assert_eq!(connector.stage_bytes, 4 << 20);
    assert_eq!(parse(&[("max.queue.size.in.bytes", "1048576")]).stage_bytes, 1 << 20);
    assert_eq!(connector.queue_bytes, 16 << 20);
    assert_eq!(connector.retry.limit, None);
    assert_eq!(connector.kafka.transactional_id, "tidegate-orders-0");
    assert_eq!(connector.kafka.offsets_topic.name, "tidegate-offsets");
    assert_eq!(connector.kafka.boundaries.offset_flush_interval, Duration::from_secs(5));
    assert_eq!(connector.kafka.boundaries.linger, Duration::from_millis(100));
    assert_eq!(connector.kafka.producer.bootstrap_servers(), "localhost:9092");
    let SourceSettings::Postgres(source) = connector.source;
    assert_eq!((source.connection.port, source.slot_name.as_str()), (5432, "debezium"));
    assert_eq!(source.connection.password.reveal(), "S3cret!1");
}

#[test]
fn settings_arrive_where_they_are_used() {
    let connector = parse(&[
        ("key.converter", "org.apache.kafka.connect.json.JsonConverter"),
        ("key.converter.schemas.enable", "false"),
        ("key.converter.decimal.format", "numeric"),
        ("value.converter", "io.confluent.connect.avro.AvroConverter"),
        ("value.converter.schema.registry.url", "https://a:1, https://b:2/"),
        ("value.converter.basic.auth.credentials.source", "USER_INFO"),
        ("value.converter.basic.auth.user.info", "alice:pw:x"),
        ("topic.delimiter", "_"),
        ("skipped.operations", "t, D"),
        ("time.precision.mode", "connect"),
        ("errors.max.retries", "3"),
        ("errors.retry.timeout", "-1"),
        ("producer.override.max.request.size", "2097152"),
        ("offset.flush.interval.ms", "1000"),
    ]);
    let decimals = DecimalFormat::Numeric;
    assert_eq!(connector.key.converter, Converter::Json { schemas: false, decimals });
    let registry = connector.value.registry.expect("Avro");
    let addresses: Vec<_> = registry.addresses.iter().map(ToString::to_string).collect();
    assert_eq!(addresses, ["https://a:1", "https://b:2"]);
    let (user, password) = ("alice".to_owned(), Secret::new("pw:x"));
    assert_eq!(registry.authentication, Authentication::Basic { user, password });
    assert_eq!(registry.retry_for, None);
    assert_eq!(connector.schema_changes_topic, "shop_schema-changes");
    let skipped = OperationSet::EMPTY.with(Operation::Truncate).with(Operation::Delete);
    assert_eq!(connector.plan.skipped, skipped);
    assert_eq!(connector.plan.values.time, TimeMode::Connect);
    assert_eq!(connector.retry.limit, Some(3));
    assert_eq!(connector.kafka.producer.get("message.max.bytes"), Some("2097152"));
    assert_eq!(connector.kafka.boundaries.offset_flush_interval, Duration::from_secs(1));
}

#[test]
fn the_workers_converter_holds_with_options_of_the_connector_over_its_own() {
    let worker = worker_of("key.converter=Json\nkey.converter.schemas.enable=false\n");
    let over = [("key.converter.schemas.enable", "true")];
    for (more, expect) in [(&over[..0], false), (&over[..], true)] {
        let connector = TypedConnector::parse(&config(more), &worker).expect("legal");
        let Converter::Json { schemas, .. } = connector.key.converter else { panic!("JSON") };
        assert_eq!(schemas, expect);
    }
    // One that names a converter gives all of its options.
    let own = config(&[("value.converter", "Avro")]);
    let faults = TypedConnector::parse(&own, &worker).map(drop).expect_err("no registry");
    assert_eq!(faults[0].key, "value.converter.schema.registry.url");
}

#[test]
fn the_three_converters_are_chosen_independently() {
    let worker = worker_of(
        "header.converter=org.apache.kafka.connect.json.JsonConverter\n\
         header.converter.schemas.enable=false\n",
    );
    let headers = |more: &[(&str, &str)]| {
        TypedConnector::parse(&config(more), &worker).map(|connector| connector.headers)
    };
    let json = |schemas| HeaderConverter::Json { schemas, decimals: DecimalFormat::Base64 };
    assert_eq!(parse(&[]).headers, HeaderConverter::Simple);
    assert_eq!(headers(&[]), Ok(json(false)));
    assert_eq!(headers(&[("header.converter.schemas.enable", "true")]), Ok(json(true)));
    assert_eq!(headers(&[("header.converter", "JsonConverter")]), Ok(json(true)));
    assert_eq!(headers(&[("header.converter", "String")]), Ok(HeaderConverter::Text));
    let connector = parse(&[
        ("key.converter", "org.apache.kafka.connect.storage.StringConverter"),
        ("key.converter.converter.encoding", "UTF-8"),
        ("value.converter", "Json"),
    ]);
    assert_eq!(connector.key.converter, Converter::Text);
    assert_eq!(connector.key.registry, None);
    assert!(matches!(connector.value.converter, Converter::Json { .. }));
}

#[test]
fn converters_name_subjects_and_find_schemas_as_they_are_told() {
    let of = |more: &[(&str, &str)]| {
        let connector = parse(more);
        let side = |side: &ConverterSettings| {
            side.registry.as_ref().map(|registry| (registry.naming, registry.lookup)).unwrap()
        };
        let notes: Vec<_> = connector.notes.iter().map(|note| note.key.clone()).collect();
        (side(&connector.key), side(&connector.value), notes)
    };
    let (topic, register) = (SubjectNaming::Topic, Lookup::Register);
    let default = (topic, register);
    assert_eq!(of(&[]), (default, default, vec![]));
    let full = "io.confluent.kafka.serializers.subject.TopicRecordNameStrategy";
    assert_eq!(
        of(&[
            ("key.converter.key.subject.name.strategy", "RecordNameStrategy"),
            ("value.converter.value.subject.name.strategy", full),
            ("value.converter.auto.register.schemas", "false"),
        ]),
        ((SubjectNaming::Record, register), (SubjectNaming::TopicRecord, Lookup::Exact), vec![])
    );
    let other = "key.converter.value.subject.name.strategy";
    let latest = "value.converter.use.latest.version";
    assert_eq!(
        of(&[
            (other, "RecordNameStrategy"),
            (latest, "true"),
            ("key.converter.auto.register.schemas", "false"),
            ("key.converter.use.latest.version", "true"),
        ]),
        ((topic, Lookup::Latest), default, vec![other.to_owned(), latest.to_owned()])
    );
    check_faults(
        &[("value.converter.value.subject.name.strategy", "com.example.Mine")],
        &["TG-E-CONFIG-INVALID: value.converter.value.subject.name.strategy 'com.example.Mine': \
           must be one of io.confluent.kafka.serializers.subject.TopicNameStrategy, \
           TopicNameStrategy, io.confluent.kafka.serializers.subject.RecordNameStrategy, \
           RecordNameStrategy, io.confluent.kafka.serializers.subject.TopicRecordNameStrategy, \
           TopicRecordNameStrategy"],
    );
}

#[test]
fn a_converter_of_bytes_has_nothing_to_write_without_a_transform() {
    check_faults(
        &[("value.converter", "org.apache.kafka.connect.converters.ByteArrayConverter")],
        &[
            "TG-E-CONFIG-INVALID: value.converter 'org.apache.kafka.connect.converters.ByteArrayConverter': \
           ByteArrayConverter writes bytes only, and change records are structs",
        ],
    );
    check_faults(
        &[("header.converter.use.latest.version", "true")],
        &["TG-E-CONFIG-UNSUPPORTED: header.converter.use.latest.version 'true': not supported: \
           no header converter has this option here"],
    );
}

#[test]
fn misspelt_values_are_answered_on_their_key() {
    check_faults(
        &[
            ("snapshot.mode", "intial"),
            ("decimal.handling.mode", "strng"),
            ("skipped.operations", "x"),
            ("table.include.list", "public.(t_a"),
            ("tasks.max", "two"),
            ("topic.prefix", ""),
        ],
        &[
            "TG-E-CONFIG-INVALID: topic.prefix '': must be 1 to 249 of the characters a-z, A-Z, 0-9, \
             '.', '_' and '-'",
            "TG-E-CONFIG-INVALID: snapshot.mode 'intial': must be one of initial, initial_only, \
             always, when_needed, no_data, never, configuration_based; did you mean initial?",
            "TG-E-CONFIG-INVALID: decimal.handling.mode 'strng': must be one of precise, double, \
             string; did you mean string?",
            "TG-E-CONFIG-INVALID: skipped.operations 'x': must be one of none, c, u, d, t, m",
            "TG-E-CONFIG-INVALID: table.include.list 'public.(t_a': public.(t_a is not a regular \
             expression: unclosed group",
            "TG-E-CONFIG-INVALID: tasks.max 'two': must be a 32-bit whole number",
        ],
    );
}

#[test]
fn contradictions_are_answered() {
    check_faults(
        &[
            ("table.include.list", "a"),
            ("table.exclude.list", "b"),
            ("database.sslcert", "/c.pem"),
            ("envelope.extensions", "none"),
            ("skipped.operations", "none,t"),
            ("transaction.stage.bytes", "134217728"),
        ],
        &[
            "TG-E-CONFIG-INVALID: skipped.operations 'none,t': none stands alone",
            "TG-E-CONFIG-INVALID: database.sslkey: database.sslcert and database.sslkey need each other",
            "TG-E-CONFIG-INVALID: table.exclude.list 'b': cannot be given together with \
             table.include.list",
            "TG-E-CONFIG-INVALID: envelope.extensions 'none': envelope.extensions=none leaves no \
             place that says which values were not sent; it needs toast.mode=refuse",
            "TG-E-CONFIG-INVALID: transaction.stage.bytes '134217728': must not be above \
             max.queue.size.in.bytes or transaction.max.bytes",
        ],
    );
    let refuse = ("toast.mode", "refuse");
    assert_eq!(parse(&[("envelope.extensions", "none"), refuse]).plan.extensions, Extensions::None);
}

#[test]
fn what_becomes_of_values_that_were_left_out_follows_from_two_keys() {
    use Incomplete::{Mark, Refuse};
    let policies = |toast: &str, key_change: &str| {
        let rows =
            parse(&[("toast.mode", toast), ("key.change.toast", key_change)]).plan.incomplete;
        let words = [rows.updates, rows.creates, rows.key_changes].map(|policy| match policy {
            Mark => "marked",
            Refuse(_) => "refused",
        });
        (words.join(" "), rows.rereads)
    };
    let check = |toast, key_change, expect: &str, rereads| {
        assert_eq!(policies(toast, key_change), (expect.to_owned(), rereads));
    };
    check("backfill", "sentinel", "marked refused marked", false);
    check("backfill", "refuse", "marked refused refused", false);
    check("backfill", "reselect", "marked refused marked", true);
    check("sentinel", "sentinel", "marked marked marked", false);
    check("sentinel", "reselect", "marked marked marked", true);
    check("refuse", "refuse", "refused refused refused", false);
    assert_eq!(parse(&[]).plan.incomplete, parse(&[("toast.mode", "backfill")]).plan.incomplete);
    let strict = parse(&[("toast.mode", "Refuse")]).plan.incomplete;
    assert_eq!(strict.key_changes, Refuse("a row under toast.mode=refuse"));
    check_faults(
        &[("toast.mode", "refuse"), ("key.change.toast", "reselect")],
        &[
            "TG-E-CONFIG-INVALID: key.change.toast 'reselect': toast.mode=refuse lets no row through \
           that is not complete",
        ],
    );
    check_faults(
        &[("unavailable.value.handling.mode", "refuse")],
        &["TG-E-CONFIG-UNSUPPORTED: unavailable.value.handling.mode 'refuse': not supported: its \
           name is toast.mode"],
    );
}

#[test]
fn a_registry_is_asked_in_one_way() {
    let token = ("value.converter.bearer.auth.token", "t");
    let avro =
        [("value.converter", "Avro"), ("value.converter.schema.registry.url", "http://r"), token];
    let registry = parse(&avro).value.registry.expect("Avro");
    assert_eq!(registry.authentication, Authentication::Bearer(Secret::new("t")));
    check_faults(
        &[
            ("value.converter", "Avro"),
            ("value.converter.schema.registry.url", "ftp://u:S3cret@r"),
            ("value.converter.basic.auth.credentials.source", "USER_INFO"),
            ("value.converter.basic.auth.user.info", "S3cret"),
            ("key.converter.basic.auth.credentials.source", "user_info"),
            ("key.converter.basic.auth.user.info", "u:p"),
            ("key.converter.bearer.auth.token", "t"),
        ],
        &[
            "TG-E-CONFIG-INVALID: key.converter.bearer.auth.token: cannot be given together with \
             basic.auth.credentials.source=USER_INFO",
            "TG-E-CONFIG-INVALID: value.converter.schema.registry.url: schema.registry.url: an address \
             begins with http:// or https://",
            "TG-E-CONFIG-INVALID: value.converter.basic.auth.user.info: must be user:password where \
             basic.auth.credentials.source is USER_INFO",
        ],
    );
}

#[test]
fn what_is_known_and_not_built_is_refused_unless_it_asks_for_nothing() {
    parse(&[("snapshot.delay.ms", "0"), ("transforms", ""), ("plugin.name", "pgoutput")]);
    check_faults(
        &[("notification.enabled.channels", "log"), ("plugin.name", "decoderbufs")],
        &[
            "TG-E-CONFIG-UNSUPPORTED: notification.enabled.channels 'log': not supported: notifications \
             are not built yet",
            "TG-E-CONFIG-UNSUPPORTED: plugin.name 'decoderbufs': decoderbufs is not supported: it has \
             to be installed on the server; pgoutput is there already",
        ],
    );
}

#[test]
fn names_of_the_server_have_codes_of_their_own() {
    let faults = TypedConnector::parse(
        &config(&[("slot.name", "Bad Name"), ("publication.name", "a-b")]),
        &worker_of(""),
    )
    .map(drop)
    .expect_err("illegal names");
    let codes: Vec<_> = faults.iter().map(|fault| fault.code).collect();
    assert_eq!(codes, [Code::SlotNameInvalid, Code::PublicationNameInvalid]);
}

#[test]
fn every_name_of_the_class_is_accepted_and_others_are_not() {
    for class in sources::CLASSES {
        for name in class.names {
            parse(&[("connector.class", name)]);
        }
    }
    check_faults(
        &[("connector.class", "PostgresConector")],
        &[
            "TG-E-CONNECTOR-UNKNOWN-CLASS: connector.class 'PostgresConector': there is no such class; \
           did you mean PostgresConnector?",
        ],
    );
    let faults = TypedConnector::parse(&ConnectorConfig::new(), &worker_of(""))
        .map(drop)
        .expect_err("empty");
    let keys: Vec<_> = faults.iter().map(|fault| fault.key.as_str()).collect();
    let required = [
        "name",
        "connector.class",
        "database.hostname",
        "database.user",
        "database.dbname",
        "topic.prefix",
    ];
    assert_eq!(keys, required);
}

#[test]
fn client_properties_are_checked_under_their_own_key() {
    check_faults(
        &[("producer.override.acks", "1"), ("producer.override.no.such", "S3cret")],
        &[
            "TG-E-CONFIG-UNSUPPORTED: producer.override.acks: 'acks' must be 'all': exactly-once \
             delivery depends on it",
            "TG-E-CONFIG-UNSUPPORTED: producer.override.no.such: 'no.such' is not a property that the \
             worker's Kafka client can carry out",
        ],
    );
}

#[test]
fn a_value_that_the_client_does_not_take_is_a_fault() {
    check_faults(
        &[("producer.override.linger.ms", "soon")],
        &[
            "TG-E-CONFIG-INVALID: producer.override: the producer does not take the value of 'linger.ms'",
        ],
    );
}

#[test]
fn keys_of_plug_ins_are_refused_by_the_list_that_names_them() {
    check_faults(
        &[("post.processors", "rs"), ("rs.type", "x"), ("rs.more", "x")],
        &[
            "TG-E-CONFIG-UNSUPPORTED: post.processors 'rs': not supported: post-processors are not built",
        ],
    );
}

proptest::proptest! {
    #![proptest_config(proptest::test_runner::Config::with_cases(64))]
    #[test]
    fn no_configuration_makes_the_parser_panic(
        pairs in proptest::collection::vec((known_or_any_key(), "\\PC{0,12}"), 0..8),
    ) {
        let worker = worker_of("");
        let config: ConnectorConfig =
            pairs.iter().map(|(key, value)| (key.clone(), Some(value.clone()))).collect();
        let is_refused = TypedConnector::parse(&config, &worker).is_err();
        let answer = validate(&config, &worker);
        proptest::prop_assert_eq!(is_refused, answer.error_count > 0);
        let shown: usize = answer.configs.iter().map(|info| info.value.errors.len()).sum();
        proptest::prop_assert_eq!(shown, answer.error_count);
        let text: String = pairs.iter().map(|(key, value)| format!("{key}={value}\n")).collect();
        drop(WorkerConfig::parse(&text, &environment()));
    }
}

fn known_or_any_key() -> impl proptest::strategy::Strategy<Value = String> {
    use proptest::strategy::Strategy;
    let names: Vec<_> = catalogues().iter().flat_map(|c| c.keys().map(|def| def.name)).collect();
    let known = proptest::sample::select(names)
        .prop_map(|name| name.replace("key|value", "key").replace(['<', '>', '|'], ""));
    proptest::prop_oneof![known, "[a-z.]{1,12}"]
}

#[test]
fn topics_are_created_by_group() {
    let connector = parse(&[
        ("topic.creation.groups", "big, default"),
        ("topic.creation.default.partitions", "3"),
        ("topic.creation.default.cleanup.policy", "compact"),
        ("topic.creation.big.include", r"shop\.public\.big.*, x{1,2}"),
        ("topic.creation.big.partitions", "12"),
        ("topic.creation.big.retention.ms", "1"),
    ]);
    let creation = connector.kafka.topic_creation;
    assert_eq!(creation.template("shop.public.big_one").partitions, 12);
    assert_eq!(creation.template("xx").configs, [("retention.ms".to_owned(), "1".to_owned())]);
    let other = creation.template("shop.public.small");
    assert_eq!((other.partitions, other.replication_factor), (3, -1));
    assert_eq!(other.configs, [("cleanup.policy".to_owned(), "compact".to_owned())]);
    check_faults(
        &[
            ("topic.creation.groups", "big"),
            ("topic.creation.big.partitions", "0"),
            ("topic.creation.default.retention.mss", "1"),
            ("topic.creation.default.include", "x"),
            ("topic.creation.small.partitions", "1"),
        ],
        &[
            "TG-E-CONFIG-INVALID: topic.creation.big.partitions: must be -1, or 1 or more",
            "TG-E-CONFIG-UNKNOWN-KEY: topic.creation.default.retention.mss: there is no topic \
             configuration retention.mss; did you mean retention.ms?",
            "TG-E-CONFIG-INVALID: topic.creation.default.include: the default group takes what no \
             other does",
            "TG-E-CONFIG-INVALID: topic.creation.small.partitions: belongs to no group in \
             topic.creation.groups",
            "TG-E-CONFIG-INVALID: topic.creation.big.include: must be given for a group",
        ],
    );
}

#[test]
fn no_secret_is_printed_and_references_are_resolved() {
    let worker = worker_of(
        "config.providers=env\n\
         config.providers.env.class=org.apache.kafka.common.config.provider.EnvVarConfigProvider\n\
         producer.sasl.password=S3cret!1\n\
         key.converter.basic.auth.credentials.source=USER_INFO\n\
         key.converter.basic.auth.user.info=u:${env:SECRET}\n",
    );
    let mut config = config(&[
        (
            "producer.override.sasl.jaas.config",
            "x.PlainLoginModule required username=u password=\"S3cret!1\";",
        ),
        ("value.converter.schema.registry.url", "http://u:S3cret!1@r"),
    ]);
    config.insert("database.password".to_owned(), Some("${env:SECRET}".to_owned()));
    let connector = TypedConnector::parse(&config, &worker).expect("legal");
    let SourceSettings::Postgres(source) = &connector.source;
    assert_eq!(source.connection.password.reveal(), "S3cret!1");
    let printed = format!("{worker:?} {connector:?}");
    assert!(!printed.contains("S3cret"), "{printed}");

    config.insert("tasks.max".to_owned(), Some("${env:SECRET}".to_owned()));
    config.insert("slot.name".to_owned(), Some("${env:SECRET}".to_owned()));
    let faults = TypedConnector::parse(&config, &worker).map(drop).expect_err("not a number");
    let printed = format!("{faults:?} {:?} {}", validate(&config, &worker), summarize(&faults));
    assert!(!printed.contains("S3cret!1\"") || printed.matches("S3cret").count() == 0, "{printed}");
    assert!(printed.contains("${env:SECRET}"), "{printed}");
}

#[test]
fn what_has_no_effect_is_said() {
    let connector = parse(&[
        ("tasks.max", "4"),
        ("max.batch.size", "10"),
        ("poll.interval.ms", "500"),
        ("value.converter.schemas.enable", "false"),
    ]);
    let notes: Vec<_> = connector.notes.iter().map(|note| note.key.as_str()).collect();
    assert_eq!(notes, ["max.batch.size", "tasks.max", "value.converter.schemas.enable"]);
}

#[test]
fn a_validation_answer_has_every_key_and_every_fault() {
    let config = config(&[
        ("snapshot.mode", "intial"),
        ("slot.nme", "x"),
        ("guardrail.collections.max", "5"),
        ("producer.override.acks", "1"),
    ]);
    let answer = validate(&config, &worker_of(""));
    assert_eq!(answer.error_count, 4);
    let info = |name: &str| {
        let found = answer.configs.iter().find(|info| info.value.name == name);
        found.unwrap_or_else(|| panic!("{name} is missing"))
    };
    let definition = info("slot.name").definition.as_ref().expect("known");
    assert_eq!((definition.kind, definition.default_value), ("STRING", Some("debezium")));
    assert_eq!(definition.display_name, "Slot name");
    assert_eq!(info("snapshot.mode").value.errors.len(), 1);
    let modes = [
        "initial",
        "initial_only",
        "always",
        "when_needed",
        "no_data",
        "never",
        "configuration_based",
    ];
    assert_eq!(info("snapshot.mode").value.recommended_values, modes);
    assert_eq!(info("database.password").value.value.as_deref(), Some("[hidden]"));
    assert_eq!(info("slot.nme").definition, None);
    assert_eq!(info("slot.nme").value.value.as_deref(), Some("[hidden]"));
    assert!(info("guardrail.collections.max").definition.is_some());
    assert_eq!(info("producer.override.acks").value.errors.len(), 1);
    assert_eq!(info("key.converter.schema.registry.url").value.value, None);
    let names: Vec<_> = answer.configs.iter().map(|info| &info.value.name).collect();
    let unique: BTreeSet<_> = names.iter().collect();
    assert_eq!(names.len(), unique.len());
    assert_eq!(answer.groups.first(), Some(&"Common"));
}

#[test]
fn a_definition_list_leaves_out_what_is_refused() {
    let all = definitions(&sources::CLASSES[0]);
    assert!(all.iter().any(|def| def.name == "value.converter.schema.registry.url"));
    assert!(all.iter().all(|def| def.name != "notification.enabled.channels"));
}

#[test]
fn the_worker_is_answered_with_all_its_faults() {
    #[track_caller]
    fn check(text: &str, expect: &[&str]) {
        let faults = WorkerConfig::parse(text, &environment()).map(drop).expect_err("faults");
        let faults: Vec<_> = faults.iter().map(ToString::to_string).collect();
        assert_eq!(faults, expect);
    }
    check("", &["TG-E-CONFIG-INVALID: bootstrap.servers: must be given"]);
    check(
        "a=\\u12",
        &[
            "TG-E-CONFIG-MALFORMED: the worker's file: line 1: \\u must be followed by the four hexadecimal \
         digits of a character",
        ],
    );
    check(
        "bootstrap.servers=k:9092\nlisteners=https://:1\ngroup.idd=x\nproducer.acks=1\n\
         sasl.mechanism=GSSAPI\nlog.level=info\nlog.level=warn\nconfig.providers=vault\n\
         config.providers.file.class=x\n",
        &[
            "TG-E-CONFIG-UNSUPPORTED: listeners 'https://:1': encrypted listeners are not built; put a \
             proxy in front",
            "TG-E-CONFIG-UNKNOWN-KEY: group.idd: there is no such key; did you mean group.id?",
            "TG-E-CONFIG-INVALID: log.level: is given twice",
            "TG-E-CONFIG-INVALID: config.providers.vault.class: must be given",
            "TG-E-CONFIG-INVALID: config.providers.file.class: belongs to no provider in \
             config.providers, or is no setting of one",
            "TG-E-CONFIG-UNSUPPORTED: producer.acks: 'acks' must be 'all': exactly-once delivery depends \
             on it",
            "TG-E-CONFIG-UNSUPPORTED: sasl.mechanism: 'sasl.mechanism' cannot be 'GSSAPI': Kerberos is \
             not built in",
        ],
    );
}

#[test]
fn a_worker_for_kafka_connect_is_understood() {
    let worker = worker_of(
        "group.id=connect-cluster\noffset.storage.topic=connect-offsets\n\
         offset.storage.replication.factor=3\nconfig.storage.topic=connect-configs\n\
         status.storage.topic=connect-status\nplugin.path=/usr/share/java\n\
         listeners=http://0.0.0.0:8083,http://[::1]:8084\nsecurity.protocol=SASL_PLAINTEXT\n\
         producer.security.protocol=PLAINTEXT\nlog.format=JSON\n",
    );
    assert_eq!((worker.group_id.as_str(), worker.log_json), ("connect-cluster", true));
    assert_eq!(worker.offsets_topic.name, "connect-offsets");
    assert_eq!(worker.states_topic.name, "connect-cluster-table-states");
    assert_eq!(worker.offsets_topic.replication_factor, 3);
    let listeners: Vec<_> = worker.listeners.iter().map(ToString::to_string).collect();
    assert_eq!(listeners, ["http://0.0.0.0:8083", "http://[::1]:8084"]);
    let protocol = |kind| worker.clients.of(kind).value("security.protocol").map(str::to_owned);
    assert_eq!(protocol(crate::kafka::ClientKind::Producer).as_deref(), Some("PLAINTEXT"));
    assert_eq!(protocol(crate::kafka::ClientKind::Admin).as_deref(), Some("SASL_PLAINTEXT"));
    let notes: Vec<_> = worker.notes.iter().map(|note| note.key.as_str()).collect();
    assert_eq!(notes, ["config.storage.topic", "status.storage.topic", "plugin.path"]);
}
