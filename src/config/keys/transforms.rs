//! Transforms and predicates: which there are, and their options.
//!
//! Names and defaults are those of Kafka Connect 4.3 and Debezium 3.6. `<name>` is the transform's
//! name in `transforms`, or the predicate's in `predicates`. Knows no source.

use super::keys;
use crate::config::{Choice, Rule, Table};

/// Every table of this file. The last one covers every name that a transform can have, so that
/// what does not belong there is answered with the name of its class.
pub const TABLES: [&Table; 6] = [
    &TRANSFORMS_AND_PREDICATES,
    &EXTRACT_NEW_RECORD_STATE,
    &REGEX_ROUTER,
    &REPLACE_FIELD,
    &PREDICATE_OPTIONS,
    &OTHERS,
];

const NOT_YET: &str = "it is not built yet";
const SCRIPTS: &str = "scripts are not run here";
const NO_SUCH_VALUES: &str = "the source has no such values";

/// The transforms, by their names.
pub const TRANSFORM_CLASSES: &[Choice] = &[
    Choice::of("io.debezium.transforms.ExtractNewRecordState"),
    Choice::of("ExtractNewRecordState"),
    Choice::of("org.apache.kafka.connect.transforms.RegexRouter"),
    Choice::of("RegexRouter"),
    Choice::of("org.apache.kafka.connect.transforms.ReplaceField$Key"),
    Choice::of("ReplaceField$Key"),
    Choice::of("org.apache.kafka.connect.transforms.ReplaceField$Value"),
    Choice::of("ReplaceField$Value"),
    Choice::of("org.apache.kafka.connect.transforms.Filter"),
    Choice::of("Filter"),
    Choice::refused("io.debezium.transforms.outbox.EventRouter", NOT_YET),
    Choice::refused("io.debezium.transforms.ByLogicalTableRouter", NOT_YET),
    Choice::refused("io.debezium.transforms.partitions.PartitionRouting", NOT_YET),
    Choice::refused("io.debezium.transforms.ExtractChangedRecordState", NOT_YET),
    Choice::refused("io.debezium.transforms.ExtractSchemaToNewRecord", NOT_YET),
    Choice::refused("io.debezium.transforms.HeaderToValue", NOT_YET),
    Choice::refused("io.debezium.transforms.TimezoneConverter", NOT_YET),
    Choice::refused("io.debezium.transforms.SchemaChangeEventFilter", NOT_YET),
    Choice::refused("io.debezium.transforms.GeometryFormatTransformer", NOT_YET),
    Choice::refused("io.debezium.transforms.SwapGeometryCoordinates", NOT_YET),
    Choice::refused("io.debezium.transforms.VectorToJsonConverter", NO_SUCH_VALUES),
    Choice::refused("io.debezium.transforms.Filter", SCRIPTS),
    Choice::refused("io.debezium.transforms.ContentBasedRouter", SCRIPTS),
    Choice::refused("io.debezium.transforms.tracing.ActivateTracingSpan", NOT_YET),
    Choice::refused("io.debezium.transforms.openlineage.OpenLineage", NOT_YET),
    Choice::refused("org.apache.kafka.connect.transforms.Cast$Key", NOT_YET),
    Choice::refused("org.apache.kafka.connect.transforms.Cast$Value", NOT_YET),
    Choice::refused("org.apache.kafka.connect.transforms.DropHeaders", NOT_YET),
    Choice::refused("org.apache.kafka.connect.transforms.ExtractField$Key", NOT_YET),
    Choice::refused("org.apache.kafka.connect.transforms.ExtractField$Value", NOT_YET),
    Choice::refused("org.apache.kafka.connect.transforms.Flatten$Key", NOT_YET),
    Choice::refused("org.apache.kafka.connect.transforms.Flatten$Value", NOT_YET),
    Choice::refused("org.apache.kafka.connect.transforms.HeaderFrom$Key", NOT_YET),
    Choice::refused("org.apache.kafka.connect.transforms.HeaderFrom$Value", NOT_YET),
    Choice::refused("org.apache.kafka.connect.transforms.HoistField$Key", NOT_YET),
    Choice::refused("org.apache.kafka.connect.transforms.HoistField$Value", NOT_YET),
    Choice::refused("org.apache.kafka.connect.transforms.InsertField$Key", NOT_YET),
    Choice::refused("org.apache.kafka.connect.transforms.InsertField$Value", NOT_YET),
    Choice::refused("org.apache.kafka.connect.transforms.InsertHeader", NOT_YET),
    Choice::refused("org.apache.kafka.connect.transforms.MaskField$Key", NOT_YET),
    Choice::refused("org.apache.kafka.connect.transforms.MaskField$Value", NOT_YET),
    Choice::refused("org.apache.kafka.connect.transforms.SetSchemaMetadata$Key", NOT_YET),
    Choice::refused("org.apache.kafka.connect.transforms.SetSchemaMetadata$Value", NOT_YET),
    Choice::refused("org.apache.kafka.connect.transforms.TimestampConverter$Key", NOT_YET),
    Choice::refused("org.apache.kafka.connect.transforms.TimestampConverter$Value", NOT_YET),
    Choice::refused("org.apache.kafka.connect.transforms.TimestampRouter", NOT_YET),
    Choice::refused("org.apache.kafka.connect.transforms.ValueToKey", NOT_YET),
];

/// The predicates, by their names.
pub const PREDICATE_CLASSES: &[Choice] = &[
    Choice::of("org.apache.kafka.connect.transforms.predicates.TopicNameMatches"),
    Choice::of("TopicNameMatches"),
    Choice::of("org.apache.kafka.connect.transforms.predicates.RecordIsTombstone"),
    Choice::of("RecordIsTombstone"),
    Choice::of("org.apache.kafka.connect.transforms.predicates.HasHeaderKey"),
    Choice::of("HasHeaderKey"),
];

keys! {
    /// Single message transforms and predicates.
    TRANSFORMS_AND_PREDICATES "Transforms"
    supported {
        TRANSFORMS "transforms" List () Medium
            "Names of transforms; each is applied to what the one before it made of a record. The definitions in the control topic are not transformed.";
        TRANSFORM_TYPE "transforms.<name>.type" Class () Medium
            "What the transform does."
            Rule::OneOf(TRANSFORM_CLASSES);
        TRANSFORM_PREDICATE "transforms.<name>.predicate" String () Low
            "Name of the predicate that picks the records to which the transform is applied; without it they are all.";
        TRANSFORM_NEGATE "transforms.<name>.negate" Boolean ("false") Low
            "Whether the transform is applied to the records that the predicate does not pick.";
        PREDICATES "predicates" List () Low
            "Names of predicates.";
        PREDICATE_TYPE "predicates.<name>.type" Class () Low
            "What the predicate asks."
            Rule::OneOf(PREDICATE_CLASSES);
    }
    no effect {
        "transforms.<name>.replace.null.with.default" Boolean ("true")
            "null is always written as null, never as the column's default";
    }
    refused {
        "transforms.<name>.plugin.version" String () "a worker has exactly one version of everything";
        "predicates.<name>.plugin.version" String () "a worker has exactly one version of everything";
    }
}

keys! {
    /// Options of `ExtractNewRecordState`.
    EXTRACT_NEW_RECORD_STATE "Transform ExtractNewRecordState"
    supported {
        UNWRAP_DELETES "transforms.<name>.delete.tombstone.handling.mode" String ("tombstone") Medium
            "What a delete and its tombstone become: nothing; one tombstone; or the row before the delete with __deleted=true (every other row has __deleted=false), with or without a tombstone behind it. A truncate has no row, and does not come out."
            Rule::OneOf(&[
                Choice::of("drop"),
                Choice::of("tombstone"),
                Choice::of("rewrite"),
                Choice::of("rewrite-with-tombstone"),
                Choice::of("delete-to-tombstone"),
            ]);
        UNWRAP_ADD_FIELDS "transforms.<name>.add.fields" List () Medium
            "Parts of the envelope to put behind the row's columns, each as [block.]field[:name]; the blocks are before, after, source and transaction.";
        UNWRAP_ADD_FIELDS_PREFIX "transforms.<name>.add.fields.prefix" String ("__") Low
            "What the names of those fields begin with.";
        UNWRAP_ADD_HEADERS "transforms.<name>.add.headers" List () Low
            "Parts of the envelope to add as headers, in the same notation. A column that the source never sends with a change of its kind gives no header.";
        UNWRAP_ADD_HEADERS_PREFIX "transforms.<name>.add.headers.prefix" String ("__") Low
            "What the names of those headers begin with.";
        UNWRAP_ROUTE "transforms.<name>.route.by.field" String () Low
            "A column of text that names the topic of each row and of its delete; where it is null or blank the table's own topic is meant. The source has to send the column with deletes, or deletes have to be left out. A row whose column changes goes to the new topic and stays in the old one, too.";
    }
    no effect {}
    refused {
        "transforms.<name>.drop.fields.header.name" String ()
            "the fields of a record would depend on its headers' values; ReplaceField leaves fields out by name";
        "transforms.<name>.drop.fields.from.key" Boolean ("false")
            "matters only with drop.fields.header.name, which is refused";
        "transforms.<name>.drop.fields.keep.schema.compatible" Boolean ("true")
            "matters only with drop.fields.header.name, which is refused";
        "transforms.<name>.drop.tombstones" Boolean ()
            "Debezium 3 has delete.tombstone.handling.mode in its place";
        "transforms.<name>.delete.handling.mode" String ()
            "Debezium 3 has delete.tombstone.handling.mode in its place";
        "transforms.<name>.add.source.fields" List () "its name is add.fields";
        "transforms.<name>.operation.header" Boolean () "Debezium has add.headers=op in its place";
    }
}

keys! {
    /// Options of `RegexRouter`.
    REGEX_ROUTER "Transform RegexRouter"
    supported {
        ROUTER_REGEX "transforms.<name>.regex" String () Medium
            "Which topics are replaced: an expression that the whole topic has to match.";
        ROUTER_REPLACEMENT "transforms.<name>.replacement" String () Medium
            "What the match is replaced by; $1 and ${name} are groups of the expression. Names of schemas do not change. Tables that end up in one topic share its subjects in the registry, and their keys.";
    }
    no effect {}
    refused {}
}

keys! {
    /// Options of `ReplaceField`.
    REPLACE_FIELD "Transform ReplaceField"
    supported {
        REPLACE_INCLUDE "transforms.<name>.include" List () Medium
            "The fields that are kept; none: all.";
        REPLACE_EXCLUDE "transforms.<name>.exclude" List () Medium
            "The fields that are left out, even if they are in include.";
        REPLACE_RENAMES "transforms.<name>.renames" List () Medium
            "New names, each as old:new.";
    }
    no effect {}
    refused {
        "transforms.<name>.whitelist" List () "its name is include";
        "transforms.<name>.blacklist" List () "its name is exclude";
    }
}

keys! {
    /// Options of the predicates.
    PREDICATE_OPTIONS "Predicates"
    supported {
        TOPIC_PATTERN "predicates.<name>.pattern" String () Low
            "TopicNameMatches: an expression that the whole topic has to match.";
        HEADER_NAME "predicates.<name>.name" String () Low
            "HasHeaderKey: the name of a header.";
    }
    no effect {}
    refused {}
}

keys! {
    /// What none of the tables above has.
    OTHERS "Other options of transforms"
    supported {
        TRANSFORM_OPTION "transforms.<name>.<option>" String () Low
            "Anything else is an option of no transform, and is answered so.";
        PREDICATE_OPTION "predicates.<name>.<option>" String () Low
            "Anything else is an option of no predicate, and is answered so.";
    }
    no effect {}
    refused {}
}
