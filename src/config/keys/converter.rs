//! Options of the converters. Each name is written once for all that have it: `<key|value>` stands
//! for either.
//!
//! Names and defaults are those of Confluent's Avro converter 7.0 and Kafka's JSON converter 4.3.

use super::keys;
use crate::config::{Choice, Rule, Table};

/// Every table of this file.
pub const TABLES: [&Table; 2] = [&REGISTRY, &CONVERTER_DETAILS];

const NAME_STRATEGIES: &[Choice] = &[
    Choice::of("io.confluent.kafka.serializers.subject.TopicNameStrategy"),
    Choice::of("TopicNameStrategy"),
    Choice::of("io.confluent.kafka.serializers.subject.RecordNameStrategy"),
    Choice::of("RecordNameStrategy"),
    Choice::of("io.confluent.kafka.serializers.subject.TopicRecordNameStrategy"),
    Choice::of("TopicRecordNameStrategy"),
];

keys! {
    /// How the schema registry is reached.
    REGISTRY "Schema Registry"
    supported {
        REGISTRY_URL "<key|value>.converter.schema.registry.url" List () High
            "Addresses of the schema registry, tried in order. The Avro converter needs one.";
        CREDENTIALS_SOURCE "<key|value>.converter.basic.auth.credentials.source" String ("URL") Medium
            "Where user and password for the registry stand: in the address, or in basic.auth.user.info."
            Rule::OneOf(&[
                Choice::of("URL"),
                Choice::of("USER_INFO"),
                Choice::refused("SASL_INHERIT", "give them as USER_INFO"),
            ]);
        USER_INFO "<key|value>.converter.basic.auth.user.info" Password () Medium
            "User and password for the registry, joined by a colon.";
        BEARER_TOKEN "<key|value>.converter.bearer.auth.token" Password () Medium
            "A token for the registry, instead of user and password.";
        HTTP_READ_TIMEOUT "<key|value>.converter.http.read.timeout.ms" Int ("30000") Low
            "Limit on one request to one address of the registry, connecting included."
            Rule::AtLeast(1);
        AUTO_REGISTER "<key|value>.converter.auto.register.schemas" Boolean ("true") Medium
            "Whether a schema that the registry does not have is registered, if its compatibility rule allows it; if not, the task stops and shows the schema.";
        USE_LATEST "<key|value>.converter.use.latest.version" Boolean ("false") Low
            "With auto.register.schemas=false: the subject's latest version stands for the record's schema, if both give bytes the same meaning (documentation, defaults, aliases and parameters may differ).";
        KEY_STRATEGY "<key|value>.converter.key.subject.name.strategy" Class
            ("io.confluent.kafka.serializers.subject.TopicNameStrategy") Medium
            "How the key converter names subjects: <topic>-key, the record's full name, or <topic>-<full name>."
            Rule::OneOf(NAME_STRATEGIES);
        VALUE_STRATEGY "<key|value>.converter.value.subject.name.strategy" Class
            ("io.confluent.kafka.serializers.subject.TopicNameStrategy") Medium
            "How the value converter names subjects: <topic>-value, the record's full name, or <topic>-<full name>."
            Rule::OneOf(NAME_STRATEGIES);
    }
    no effect {
        "<key|value|header>.converter.schemas.cache.size" Int ("1000")
            "an id is kept for as long as its schema is in use";
        "<key|value>.converter.schemas.cache.config" Int ("1000")
            "an id is kept for as long as its schema is in use";
        "<key|value>.converter.max.schemas.per.subject" Int ("1000")
            "an id is kept for as long as its schema is in use";
        "<key|value>.converter.latest.compatibility.strict" Boolean ("true")
            "a latest version that does not fit is never written with";
        "<key|value>.converter.id.compatibility.strict" Boolean ("true")
            "matters only with use.schema.id, which is refused";
        "<key|value>.converter.bearer.auth.credentials.source" String ("STATIC_TOKEN")
            "a token is used as it is given"
            Rule::OneOf(&[
                Choice::of("STATIC_TOKEN"),
                Choice::refused("OAUTHBEARER", "only tokens that do not change are built"),
                Choice::refused("SASL_OAUTHBEARER_INHERIT", "only tokens that do not change are built"),
                Choice::refused("CUSTOM", "it names a Java class"),
            ]);
        "<key|value>.converter.http.connect.timeout.ms" Int ("60000") "it is part of http.read.timeout.ms";
    }
    refused {
        "<key|value>.converter.schema.registry.basic.auth.user.info" Password ()
            "its name is basic.auth.user.info";
        "<key|value>.converter.use.schema.id" Int ("-1")
            "a record is always written with the schema of its own table version";
        "<key|value>.converter.normalize.schemas" Boolean ("false")
            "schemas are registered as the converter writes them";
        "<key|value>.converter.context.name.strategy" Class
            ("io.confluent.kafka.serializers.context.NullContextNameStrategy")
            "contexts of the registry are not built";
        "<key|value>.converter.proxy.host" String () "proxies are not built";
        "<key|value>.converter.proxy.port" Int ("-1") "proxies are not built";
        "<key|value>.converter.schema.reflection" Boolean ("false")
            "there are no Java classes to look into";
        "<key|value>.converter.schema.registry.ssl.<property>" String ()
            "the registry's certificate is checked against the system's roots";
    }
}

keys! {
    /// How records are written.
    CONVERTER_DETAILS "Converters"
    supported {
        SCHEMAS_ENABLE "<key|value|header>.converter.schemas.enable" Boolean ("true") Medium
            "JSON: whether every key, value or header carries its schema.";
        DECIMAL_FORMAT "<key|value|header>.converter.decimal.format" String ("BASE64") Low
            "JSON: whether exact decimals are written as the Base64 text of their bytes, or as numbers."
            Rule::OneOf(&[Choice::of("BASE64"), Choice::of("NUMERIC")]);
    }
    no effect {
        "<key|value>.converter.ignore.default.for.nullables" Boolean ("false")
            "null is always written as null, never as the column's default";
        "<key|value|header>.converter.replace.null.with.default" Boolean ("true")
            "null is always written as null, never as the column's default";
        "<key|value|header>.converter.converter.type" String () "a converter knows which side it is on";
        "<key|value|header>.converter.converter.encoding" String ("UTF8")
            "texts are always UTF-8"
            Rule::OneOf(&[
                Choice::of("UTF8"),
                Choice::of("UTF-8"),
                Choice::refused("ISO-8859-1", "texts are always UTF-8"),
                Choice::refused("US-ASCII", "texts are always UTF-8"),
                Choice::refused("UTF-16", "texts are always UTF-8"),
            ]);
        "<key|value>.converter.allow.optional.map.keys" Boolean ("false")
            "no map is published whose keys may be missing";
        "<key|value>.converter.flatten.singleton.unions" Boolean ("false")
            "matters only where records are read";
        "<key|value>.converter.discard.type.doc.default" Boolean ("false")
            "matters only where records are read";
    }
    refused {
        "<key|value>.converter.schema.content" String () "the schema comes from the table";
        "<key|value>.converter.connect.meta.data" Boolean ("true")
            "published schemas always carry Connect's names and parameters";
        "<key|value>.converter.enhanced.avro.schema.support" Boolean ("false")
            "schemas are written as without it";
        "<key|value>.converter.generalized.sum.type.support" Boolean ("false")
            "schemas are written as without it";
        "<key|value>.converter.scrub.invalid.names" Boolean ("false")
            "use field.name.adjustment.mode and schema.name.adjustment.mode";
        "header.converter.<option>" String () "no header converter has this option here";
    }
}
