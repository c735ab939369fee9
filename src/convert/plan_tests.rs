//! Real plans, of every type in every mode, compile to programs of both formats.

use std::sync::Arc;

use super::testing::{TestParser, column};
use super::{Converter, Converters, DecimalFormat, HeaderConverter, Place, TableWriter};
use crate::change::{BeforeImage, Column, ColumnType, TableId, TableVersion};
use crate::plan::{
    BeforeUnsent, BinaryMode, DecimalMode, IntervalMode, KeyValueMode, PlanSettings, SourceBlock,
    SourceField, TablePlan, TimeMode,
};
use crate::record::{Field, Kind, Render, Schema, TopicId};

/// Every type, nullable and not.
fn types() -> Vec<ColumnType> {
    let scalars = vec![
        ColumnType::Bool,
        ColumnType::Int16,
        ColumnType::Int32,
        ColumnType::Int64,
        ColumnType::Float32,
        ColumnType::Float64,
        ColumnType::Decimal { precision: 10, scale: 2 },
        ColumnType::Decimal { precision: 3, scale: -2 },
        ColumnType::Decimal { precision: 3, scale: 5 },
        ColumnType::VariableDecimal,
        ColumnType::Money,
        ColumnType::Text,
        ColumnType::Json,
        ColumnType::Xml,
        ColumnType::Uuid,
        ColumnType::LabelTree,
        ColumnType::TextSearchVector,
        ColumnType::Enum { labels: Arc::from(["a".to_owned(), "b".to_owned()]) },
        ColumnType::Bytes,
        ColumnType::Bits { length: Some(1) },
        ColumnType::Bits { length: Some(9) },
        ColumnType::Bits { length: None },
        ColumnType::Date,
        ColumnType::Time { precision: 3 },
        ColumnType::Time { precision: 6 },
        ColumnType::ZonedTime,
        ColumnType::Timestamp { precision: 3 },
        ColumnType::Timestamp { precision: 6 },
        ColumnType::ZonedTimestamp { precision: 6 },
        ColumnType::Interval,
        ColumnType::Point,
        ColumnType::KeyValues,
        ColumnType::Geometry { geodetic: false },
        ColumnType::Geometry { geodetic: true },
        ColumnType::Opaque { type_name: "box".to_owned() },
    ];
    let arrays: Vec<_> =
        scalars.iter().map(|element| ColumnType::Array(Box::new(element.clone()))).collect();
    let vectors = [false, true].map(|half| ColumnType::Vector { half });
    scalars.into_iter().chain(arrays).chain(vectors).collect()
}

fn version() -> TableVersion {
    let mut columns = vec![column("id", ColumnType::Int32, TestParser::Int)];
    for (index, kind) in types().into_iter().enumerate() {
        let column = column(&format!("a{index}"), kind, TestParser::Text);
        let required = Column { name: format!("b{index}"), nullable: false, ..column.clone() };
        columns.extend([column, required]);
    }
    TableVersion {
        table: TableId { namespace: "public".to_owned(), name: "t".to_owned() },
        native_id: 1,
        epoch: 1,
        fingerprint: 1,
        columns,
        key: vec![0],
        before_image: BeforeImage::Key(vec![0]),
        identity: "default".to_owned(),
        comment: None,
    }
}

fn source() -> SourceBlock {
    let schema = Arc::new(Schema::new(Kind::Int64));
    let fields = vec![Field { name: "ts_ms".to_owned(), schema }];
    SourceBlock {
        schema: Arc::new(Schema::new(Kind::Struct(fields)).named("test.Source", Some(1))),
        fields: vec![SourceField::Event { index: 0, render: Render::ClockMillis }],
        connector: "test".to_owned(),
        position_header: "position".to_owned(),
        announced: |_| Vec::new(),
    }
}

fn check(settings: &PlanSettings) {
    for before_image in [BeforeImage::Key(vec![0]), BeforeImage::Full, BeforeImage::None] {
        let version = TableVersion { before_image, ..version() };
        let plan = TablePlan::compile(Arc::new(version), settings, &source()).unwrap();
        let json = Converter::Json { schemas: true, decimals: DecimalFormat::Numeric };
        for converter in [Converter::Avro, json] {
            for shape in plan.records().flat_map(|r| r.key.iter().chain(&r.value)) {
                converter.schema_text(&shape.schema).unwrap();
            }
            let place = Some(Place { topic: TopicId(0), key: Some(1), value: Some(2) });
            let places = vec![place; plan.records().count()];
            let converters =
                Converters { key: converter, value: converter, headers: HeaderConverter::Simple };
            TableWriter::new(&plan, &converters, &places).unwrap();
        }
    }
}

#[test]
fn every_type_compiles_in_every_mode() {
    let mut settings = PlanSettings::new("srv");
    for decimal in DecimalMode::ALL {
        settings.values.decimal = *decimal;
        check(&settings);
    }
    for time in TimeMode::ALL {
        settings.values.time = *time;
        check(&settings);
    }
    for (interval, binary) in [
        (IntervalMode::Numeric, BinaryMode::Hex),
        (IntervalMode::String, BinaryMode::Base64),
        (IntervalMode::String, BinaryMode::Base64UrlSafe),
    ] {
        (settings.values.interval, settings.values.binary) = (interval, binary);
        check(&settings);
    }
    settings.values.key_values = KeyValueMode::Map;
    check(&settings);
    settings.before_unsent = BeforeUnsent::Fill;
    check(&settings);
}
