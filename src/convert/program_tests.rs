//! Random tables, rows and shapes, written by programs and read by Avro's own library.

use std::sync::Arc;

use proptest::prelude::*;

use super::avro::Avro;
use super::json::Json;
use super::program::Program;
use super::testing::{
    TestParser, base64_decode, column, decode_avro, encode_avro, event, literal_from_avro,
    literal_from_json,
};
use crate::change::{Cell, Column, ColumnType};
use crate::record::{Field, Kind, Leaf, Literal, Node, Render, Schema, Shape, Unsent};

/// What a random column is, with a value of it.
#[derive(Clone, Debug)]
enum Sample {
    Bool(bool),
    Int16(i16),
    Int32(i32),
    Int64(i64),
    Float32(f32),
    Float64(f64),
    Text(String),
    Bytes(Vec<u8>),
    Decimal(i64),
    Variable(i64),
    Ints(Vec<Option<i32>>),
    Texts(Vec<String>),
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum State {
    Sent,
    Null,
    Unsent,
}

#[derive(Clone, Debug)]
struct Random {
    sample: Sample,
    optional: bool,
    default: bool,
    state: State,
}

const SCALE: u8 = 3;

fn decimal() -> Schema {
    Schema::new(Kind::Bytes)
        .named("org.apache.kafka.connect.data.Decimal", Some(1))
        .parameter("scale", SCALE.to_string())
        .parameter("connect.decimal.precision", "38")
}

fn variable() -> Schema {
    let field =
        |name: &str, kind| Field { name: name.to_owned(), schema: Arc::new(Schema::new(kind)) };
    let fields = vec![field("scale", Kind::Int32), field("value", Kind::Bytes)];
    Schema::new(Kind::Struct(fields)).named("io.debezium.data.VariableScaleDecimal", Some(1))
}

/// The shortest two's complement form, most significant byte first.
fn unscaled(value: i64) -> Vec<u8> {
    num_bigint::BigInt::from(value).to_signed_bytes_be()
}

impl Sample {
    fn parser(&self) -> TestParser {
        match self {
            Self::Bool(_) => TestParser::Bool,
            Self::Int16(_) | Self::Int32(_) | Self::Int64(_) => TestParser::Int,
            Self::Float32(_) => TestParser::Float32,
            Self::Float64(_) => TestParser::Float64,
            Self::Text(_) => TestParser::Text,
            Self::Bytes(_) => TestParser::Bytes,
            Self::Decimal(_) | Self::Variable(_) => TestParser::Scaled(SCALE),
            Self::Ints(_) | Self::Texts(_) => TestParser::Json,
        }
    }

    fn schema(&self) -> Schema {
        let array = |items| Kind::Array(Arc::new(items));
        Schema::new(match self {
            Self::Bool(_) => Kind::Boolean,
            Self::Int16(_) => Kind::Int16,
            Self::Int32(_) => Kind::Int32,
            Self::Int64(_) => Kind::Int64,
            Self::Float32(_) => Kind::Float32,
            Self::Float64(_) => Kind::Float64,
            Self::Text(_) => Kind::String,
            Self::Bytes(_) => Kind::Bytes,
            Self::Decimal(_) => return decimal(),
            Self::Variable(_) => return variable(),
            Self::Ints(_) => array(Schema::new(Kind::Int32).optional()),
            Self::Texts(_) => array(Schema::new(Kind::String)),
        })
    }

    fn render(&self) -> Render {
        let array = |element, optional| Render::Array { element: Box::new(element), optional };
        match self {
            Self::Bool(_) => Render::Boolean,
            Self::Int16(_) => Render::Int16,
            Self::Int32(_) => Render::Int32,
            Self::Int64(_) => Render::Int64,
            Self::Float32(_) => Render::Float32,
            Self::Float64(_) => Render::Float64,
            Self::Text(_) => Render::Text,
            Self::Bytes(_) => Render::Bytes,
            Self::Decimal(_) => Render::Decimal { scale: i32::from(SCALE) },
            Self::Variable(_) => Render::VariableDecimal,
            Self::Ints(_) => array(Render::Int32, true),
            Self::Texts(_) => array(Render::Text, false),
        }
    }

    /// The value in the notation of its parser.
    fn raw(&self) -> Vec<u8> {
        match self {
            Self::Bool(value) => value.to_string().into_bytes(),
            Self::Int16(value) => value.to_string().into_bytes(),
            Self::Int32(value) => value.to_string().into_bytes(),
            Self::Int64(value) | Self::Decimal(value) | Self::Variable(value) => {
                value.to_string().into_bytes()
            }
            Self::Float32(value) => value.to_string().into_bytes(),
            Self::Float64(value) => value.to_string().into_bytes(),
            Self::Text(value) => value.clone().into_bytes(),
            Self::Bytes(value) => value.clone(),
            Self::Ints(values) => serde_json::to_vec(values).unwrap(),
            Self::Texts(values) => serde_json::to_vec(values).unwrap(),
        }
    }

    /// The value as it must come out.
    fn literal(&self) -> Literal {
        match self {
            Self::Bool(value) => Literal::Boolean(*value),
            Self::Int16(value) => Literal::Int((*value).into()),
            Self::Int32(value) => Literal::Int((*value).into()),
            Self::Int64(value) => Literal::Int(*value),
            Self::Float32(value) => Literal::Float32(*value),
            Self::Float64(value) => Literal::Float64(*value),
            Self::Text(value) => Literal::String(value.clone()),
            Self::Bytes(value) => Literal::Bytes(value.clone()),
            Self::Decimal(value) => Literal::Bytes(unscaled(*value)),
            Self::Variable(value) => {
                let (mut rest, mut scale) = (*value, i64::from(SCALE));
                while scale > 0 && rest % 10 == 0 {
                    (rest, scale) = (rest / 10, scale - 1);
                }
                Literal::Struct(vec![Literal::Int(scale), Literal::Bytes(unscaled(rest))])
            }
            Self::Ints(values) => {
                let int = |value: i32| Literal::Int(value.into());
                Literal::Array(values.iter().map(|v| v.map_or(Literal::Null, int)).collect())
            }
            Self::Texts(values) => {
                Literal::Array(values.iter().cloned().map(Literal::String).collect())
            }
        }
    }
}

fn sample() -> impl Strategy<Value = Sample> {
    prop_oneof![
        any::<bool>().prop_map(Sample::Bool),
        any::<i16>().prop_map(Sample::Int16),
        any::<i32>().prop_map(Sample::Int32),
        prop_oneof![any::<i64>(), -70_i64..70].prop_map(Sample::Int64),
        any::<f32>().prop_map(Sample::Float32),
        any::<f64>().prop_map(Sample::Float64),
        prop_oneof![".{0,20}", ".{60,200}"].prop_map(Sample::Text),
        prop::collection::vec(any::<u8>(), 0..80).prop_map(Sample::Bytes),
        any::<i64>().prop_map(Sample::Decimal),
        any::<i64>().prop_map(Sample::Variable),
        prop::collection::vec(any::<Option<i32>>(), 0..150).prop_map(Sample::Ints),
        prop::collection::vec(".{0,8}", 0..5).prop_map(Sample::Texts),
    ]
}

fn random() -> impl Strategy<Value = Random> {
    (sample(), any::<bool>(), any::<bool>(), 0..6).prop_map(|(sample, optional, default, state)| {
        let state = match state {
            0 if optional => State::Null,
            1 => State::Unsent,
            _ => State::Sent,
        };
        Random { sample, optional, default, state }
    })
}

/// A table of random columns, one row of it, and what must come out.
struct Case {
    columns: Vec<Column>,
    bytes: Vec<u8>,
    cells: Vec<Cell>,
    shape: Shape,
    expect: Literal,
}

fn case(randoms: &[Random]) -> Case {
    let (mut columns, mut bytes, mut cells) = (Vec::new(), Vec::new(), Vec::new());
    let (mut fields, mut shapes, mut expect) = (Vec::new(), Vec::new(), Vec::new());
    for (index, random) in randoms.iter().enumerate() {
        let (schema, raw, literal) =
            (random.sample.schema(), random.sample.raw(), random.sample.literal());
        // A second record of one name must be like the first.
        let default = random.default && !matches!(schema.kind, Kind::Struct(_));
        let schema = Arc::new(
            schema.optional_if(random.optional).default_value(default.then(|| literal.clone())),
        );
        let name = format!("c{index}");
        columns.push(column(&name, ColumnType::Text, random.sample.parser()));
        cells.push(match random.state {
            State::Null => Cell::Null,
            State::Unsent => Cell::Unavailable,
            State::Sent => Cell::Raw {
                start: bytes.len().try_into().unwrap(),
                len: raw.len().try_into().unwrap(),
            },
        });
        bytes.extend_from_slice(&raw);
        fields.push(Field { name, schema: Arc::clone(&schema) });
        let unsent = Unsent::Stamp(literal.clone());
        let node =
            Node::Column { leaf: Leaf::After(index), render: random.sample.render(), unsent };
        shapes.push(Shape { schema, node });
        expect.push(if random.state == State::Null { Literal::Null } else { literal });
    }
    let after = Arc::new(Schema::new(Kind::Struct(fields)).named("t.Value", None).optional());
    let after_shape = Shape { schema: Arc::clone(&after), node: Node::Struct(shapes) };
    let (op, version) = (Arc::new(Schema::new(Kind::String)), Arc::new(Schema::new(Kind::Int64)));
    let constant = |schema: &Arc<Schema>, literal| Shape {
        schema: Arc::clone(schema),
        node: Node::Constant(literal),
    };
    let field = |name: &str, schema: &Arc<Schema>| Field {
        name: name.to_owned(),
        schema: Arc::clone(schema),
    };
    let envelope = Schema::new(Kind::Struct(vec![
        field("before", &after),
        field("after", &after),
        field("op", &op),
        field("version", &version),
    ]));
    let shape = Shape {
        schema: Arc::new(envelope.named("t.Envelope", Some(2))),
        node: Node::Struct(vec![
            constant(&after, Literal::Null),
            after_shape,
            constant(&op, Literal::String("c".to_owned())),
            constant(&version, Literal::Int(7)),
        ]),
    };
    let expect = Literal::Struct(vec![
        Literal::Null,
        Literal::Struct(expect),
        Literal::String("c".to_owned()),
        Literal::Int(7),
    ]);
    Case { columns, bytes, cells, shape, expect }
}

proptest! {
    #[test]
    fn avro_is_what_the_reference_library_writes(
        randoms in prop::collection::vec(random(), 0..12),
    ) {
        let case = case(&randoms);
        let program =
            Program::compile(&Avro, &case.shape, &case.columns, "x", (b"head", b"")).unwrap();
        let mut out = b"earlier".to_vec();
        program.run(&event(&case.bytes, None, Some(&case.cells)), &mut out).unwrap();
        let datum = out.strip_prefix(b"earlierhead").unwrap();
        let value = decode_avro(&case.shape.schema, datum);
        // NaN is not equal to itself; its text is.
        prop_assert_eq!(
            format!("{:?}", literal_from_avro(&case.shape.schema, &value)),
            format!("{:?}", case.expect)
        );
        prop_assert_eq!(encode_avro(&case.shape.schema, &value), datum);
    }

    #[test]
    fn json_reads_back_to_the_same_values(
        mut randoms in prop::collection::vec(random(), 0..12),
    ) {
        // The reader here is not exact; the text of floating-point numbers has a test of its own.
        randoms.retain(|random| !matches!(random.sample, Sample::Float64(_)));
        let case = case(&randoms);
        let program =
            Program::compile(&Json::Base64, &case.shape, &case.columns, "x", (b"", b"")).unwrap();
        let mut out = Vec::new();
        program.run(&event(&case.bytes, None, Some(&case.cells)), &mut out).unwrap();
        let json = serde_json::from_slice(&out).unwrap();
        prop_assert_eq!(
            format!("{:?}", literal_from_json(&case.shape.schema, &json)),
            format!("{:?}", case.expect)
        );
    }

    #[test]
    fn base64_reads_back(bytes: Vec<u8>) {
        let mut out = bytes.clone();
        super::json::text::append_base64(&mut out, 0);
        prop_assert_eq!(base64_decode(std::str::from_utf8(&out).unwrap().trim_matches('"')), bytes);
    }
}
