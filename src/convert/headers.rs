//! Headers of a record → bytes, as the header converter writes them.
//!
//! Knows neither topics nor guards. **Invariant:** what is the same for every row is spelled when
//! the table version is opened, its frame included.

use super::json::Json;
use super::json::text::append_integer;
use super::program::{Failure, Input, Numbers, Program};
use super::{Converter, DecimalFormat};
use crate::change::{Column, ColumnType, Event, Scalar, ValueError};
use crate::error::{Code, Fault};
use crate::record::{Expression, HeaderValue, Kind, Leaf, Literal, Node, Schema, Shape};

/// How the headers of a connector's records become bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HeaderConverter {
    /// Texts as they are, structs nearly as JSON: Connect's `SimpleHeaderConverter`.
    Simple,
    /// JSON as Connect's `JsonConverter` writes it.
    Json {
        /// `schemas.enable`: whether every header carries its schema.
        schemas: bool,
        /// `decimal.format`.
        decimals: DecimalFormat,
    },
    /// As Java's `toString` has it: Connect's `StringConverter`.
    Text,
}

/// The content of one header.
#[derive(Debug)]
pub(super) enum Content {
    Constant(Box<[u8]>),
    Null,
    /// Text that depends on the row.
    Text(Text, Frame),
    /// Anything else.
    Shape(Program<Json>, WhenNull),
}

/// A text that depends on the row.
#[derive(Debug)]
pub(super) enum Text {
    /// A value that has a text of its own.
    Value(Input),
    /// The record's number among those of its message.
    Part,
    /// Names, each with the value whose absence puts it into the list.
    NamesOfUnsent(Box<[(Input, Box<[u8]>)]>),
    /// Names, each with the column whose being read anew puts it into the list.
    NamesOfReread(Box<[(usize, Box<[u8]>)]>),
}

/// What stands around a text, and how its inside is spelled.
#[derive(Clone, Debug)]
pub(super) struct Frame {
    style: Json,
    before: Box<[u8]>,
    behind: Box<[u8]>,
    /// What a missing text is; `None`: no bytes.
    null: Option<Box<[u8]>>,
}

/// What becomes of a header whose whole value is null.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum WhenNull {
    /// The format has a text for it.
    Written,
    /// The header has no bytes.
    Absent,
}

impl HeaderConverter {
    /// The bytes of a text.
    ///
    /// # Errors
    /// The converter has no frame for texts.
    pub fn text(self, text: &str) -> Result<Vec<u8>, Fault> {
        let frame = self.text_frame()?;
        let mut out = frame.before.to_vec();
        frame.style.piece(text, &mut out);
        out.extend_from_slice(&frame.behind);
        Ok(out)
    }

    /// Compiles a header's content.
    ///
    /// # Errors
    /// The value does not fit its schema, or the converter cannot write it.
    pub(super) fn compile(self, value: &HeaderValue, columns: &[Column]) -> Result<Content, Fault> {
        match value {
            HeaderValue::Constant(text) => Ok(Content::Constant(self.text(text)?.into())),
            HeaderValue::Expression(expression) => {
                let frame = self.text_frame()?;
                Ok(Content::Text(Text::compile(expression, columns, frame.style)?, frame))
            }
            HeaderValue::Shape(shape) => self.shape(shape, columns),
        }
    }

    fn shape(self, shape: &Shape, columns: &[Column]) -> Result<Content, Fault> {
        let is_null = matches!(shape.node, Node::Constant(Literal::Null));
        let converter = match self {
            Self::Simple if is_null => return Ok(Content::Null),
            Self::Simple => {
                return Ok(Content::Shape(readable(shape, columns)?, WhenNull::Absent));
            }
            Self::Json { schemas, decimals } => Converter::Json { schemas, decimals },
            Self::Text => Converter::Text,
        };
        if is_null && !converter.writes_null() {
            return Ok(Content::Null);
        }
        let when_null = if converter.writes_null() { WhenNull::Written } else { WhenNull::Absent };
        let (before, behind) = converter.frame(&shape.schema, None)?;
        let style = converter.text_style();
        let program = Program::compile(&style, shape, columns, "a header", (&before, behind))?;
        Ok(Content::Shape(program, when_null))
    }

    /// What is around a required text without a name.
    fn text_frame(self) -> Result<Frame, Fault> {
        let Self::Json { schemas, decimals } = self else {
            return Ok(Frame {
                style: Json::Plain,
                before: Box::default(),
                behind: Box::default(),
                null: None,
            });
        };
        let converter = Converter::Json { schemas, decimals };
        let text = Schema::new(Kind::String);
        let (before, behind) = converter.frame(&text, None)?;
        let mut null = Vec::new();
        converter.encode_literal(&text.optional(), None, &Literal::Null, &mut null)?;
        Ok(Frame {
            style: decimals.style(),
            before: [&before, b"\"".as_slice()].concat().into(),
            behind: [b"\"", behind].concat().into(),
            null: Some(null.into()),
        })
    }
}

impl Content {
    /// Appends the header's value; `false`: it is null.
    pub(super) fn write(
        &self,
        event: &Event<'_>,
        part: u32,
        out: &mut Vec<u8>,
    ) -> Result<bool, Failure> {
        match self {
            Self::Constant(bytes) => out.extend_from_slice(bytes),
            Self::Null => return Ok(false),
            Self::Shape(program, WhenNull::Absent) => return program.run_unless_null(event, out),
            Self::Shape(program, WhenNull::Written) => program.run(event, out)?,
            Self::Text(text, frame) => {
                let start = out.len();
                out.extend_from_slice(&frame.before);
                if text.write(event, part, frame.style, out)? {
                    out.extend_from_slice(&frame.behind);
                } else {
                    out.truncate(start);
                    let Some(null) = &frame.null else { return Ok(false) };
                    out.extend_from_slice(null);
                }
            }
        }
        Ok(true)
    }
}

impl Text {
    fn compile(expression: &Expression, columns: &[Column], style: Json) -> Result<Self, Fault> {
        Ok(match expression {
            Expression::Text(leaf) => {
                check_text(leaf, columns)?;
                Self::Value(Input::compile(leaf, columns)?)
            }
            Expression::Part => Self::Part,
            Expression::NamesOfUnsent(names) => Self::NamesOfUnsent(
                names
                    .iter()
                    .map(|(leaf, name)| {
                        let mut spelled = Vec::new();
                        style.piece(name, &mut spelled);
                        Ok((Input::compile(leaf, columns)?, spelled.into()))
                    })
                    .collect::<Result<_, Fault>>()?,
            ),
            Expression::NamesOfReread(names) => {
                let spelled = |(column, name): &(usize, String)| {
                    let mut spelled = Vec::new();
                    style.piece(name, &mut spelled);
                    (*column, spelled.into())
                };
                Self::NamesOfReread(names.iter().map(spelled).collect())
            }
        })
    }

    fn write(
        &self,
        event: &Event<'_>,
        part: u32,
        style: Json,
        out: &mut Vec<u8>,
    ) -> Result<bool, Failure> {
        match self {
            Self::Part => append_integer(out, part.into()),
            Self::NamesOfUnsent(columns) => {
                let unsent = columns.iter().filter(|(input, _)| input.is_unsent(event));
                append_list(unsent.map(|(_, name)| &**name), out);
            }
            Self::NamesOfReread(columns) => {
                let reread = columns.iter().filter(|(column, _)| event.row.reread.contains(column));
                append_list(reread.map(|(_, name)| &**name), out);
            }
            Self::Value(input) => match input.fetch(event)? {
                Scalar::Null => return Ok(false),
                Scalar::Text(text) => style.piece(text, out),
                Scalar::Int(value) => append_integer(out, value),
                Scalar::Bool(value) => {
                    out.extend_from_slice(if value { b"true" } else { b"false" });
                }
                Scalar::Unavailable => {
                    return Err(input.failure(ValueError::Unavailable("a header")));
                }
                _ => {
                    let reason = "a value without a text of its own in a header".to_owned();
                    return Err(input.failure(ValueError::Unrepresentable(reason)));
                }
            },
        }
        Ok(true)
    }
}

fn append_list<'n>(names: impl Iterator<Item = &'n [u8]>, out: &mut Vec<u8>) {
    let mut separator: &[u8] = b"";
    for name in names {
        out.extend_from_slice(separator);
        out.extend_from_slice(name);
        separator = b",";
    }
}

/// A value as Connect's `SimpleHeaderConverter` prints it, and as people read it.
pub(super) fn readable(shape: &Shape, columns: &[Column]) -> Result<Program<Json>, Fault> {
    let style = match (&shape.schema.kind, Numbers::of(&shape.schema)) {
        (Kind::String, _) | (Kind::Bytes, Numbers::Plain) => Json::Plain,
        _ => Json::Header,
    };
    Program::compile(&style, shape, columns, "a header", (b"", b""))
}

/// Whether a leaf's value is a text of its own.
fn check_text(leaf: &Leaf, columns: &[Column]) -> Result<(), Fault> {
    let (Leaf::Before(index) | Leaf::After(index)) = leaf else { return Ok(()) };
    let Some(column) = columns.get(*index) else { return Ok(()) };
    match column.kind {
        ColumnType::Bool
        | ColumnType::Int16
        | ColumnType::Int32
        | ColumnType::Int64
        | ColumnType::Text
        | ColumnType::Json
        | ColumnType::Xml
        | ColumnType::Uuid
        | ColumnType::LabelTree
        | ColumnType::TextSearchVector
        | ColumnType::Enum { .. }
        | ColumnType::Opaque { .. } => Ok(()),
        _ => Err(Code::Internal
            .fault(format!("a {} has no text of its own for a header", column.native.name))
            .at_column(&column.name)),
    }
}
