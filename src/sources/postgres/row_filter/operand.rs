//! What stands on a side of a comparison: columns, literals, casts.
//!
//! Between the parsed text and conditions. **Invariant:** an operand is read as the server reads it
//! in the same place, or refused with the reason.

use sqlparser::ast::{
    CastKind, DataType, Expr, Ident, ObjectName, UnaryOperator, Value as Literal,
};

use super::cell_test::Side;
use super::literal;
use super::scope::{Scope, TextOrder};
use super::sql_type::{Family, SqlType};
use super::value::{Constant, Reader};
use super::{Refusal, place};
use crate::sources::postgres::connection::{identifier, literal as quoted};

/// Casts upon casts.
const MOST_CASTS: u8 = 8;

/// One side of a comparison, typed, and as SQL.
#[derive(Clone, Debug)]
pub(super) struct Operand {
    pub(super) kind: Kind,
    /// Written anew, so that the server is asked nothing but what was understood.
    pub(super) sql: String,
    /// Where it stands in the text.
    pub(super) at: String,
    /// `COLLATE "C"`.
    pub(super) bytewise: bool,
}

#[derive(Clone, Debug)]
pub(super) enum Kind {
    Column(ColumnUse),
    Null,
    /// A quoted literal, whose type is that of what it is compared with.
    Untyped(String),
    Constant(SqlType, Constant),
}

/// A column, perhaps cast.
#[derive(Clone, Debug)]
pub(super) struct ColumnUse {
    pub(super) index: usize,
    pub(super) native: SqlType,
    /// What it was cast to.
    pub(super) of: SqlType,
    pub(super) order: TextOrder,
}

impl Operand {
    /// Reads an expression as an operand.
    pub(super) fn read(expr: &Expr, scope: &Scope<'_>, casts: u8) -> Result<Self, Refusal> {
        let at = place(expr);
        let refuse = |why: &str| Err(Refusal::new(why, at.clone()));
        let operand = |kind, sql: String| Self { kind, sql, at: at.clone(), bytewise: false };
        match expr {
            Expr::Nested(inner) if casts < MOST_CASTS => Self::read(inner, scope, casts + 1),
            Expr::Identifier(name) => {
                let column = column(name, scope).map_err(|why| Refusal::new(why, at.clone()))?;
                let sql = identifier(&scope.name(column.index));
                Ok(operand(Kind::Column(column), sql))
            }
            Expr::CompoundIdentifier(_) => {
                refuse("columns are named without their table, there is only one")
            }
            Expr::Value(_)
            | Expr::UnaryOp { op: UnaryOperator::Minus, .. }
            | Expr::TypedString(_)
            | Expr::Interval(_) => match constant(expr, scope) {
                Ok((kind, sql)) => Ok(operand(kind, sql)),
                Err(why) => Err(Refusal::new(why, at)),
            },
            Expr::Cast {
                kind: CastKind::Cast | CastKind::DoubleColon,
                expr: inner,
                data_type,
                format: None,
                ..
            } if casts < MOST_CASTS => {
                let of = scope.type_named(data_type).ok_or_else(|| {
                    let why = format!("a cast to {data_type} is not evaluated");
                    Refusal::new(why, at.clone())
                })?;
                Self::read(inner, scope, casts + 1)?.cast(of)
            }
            Expr::Collate { expr: inner, collation } if casts < MOST_CASTS => {
                if !is_c(collation) {
                    return refuse("only COLLATE \"C\" is evaluated: texts in the order of bytes");
                }
                let inner = Self::read(inner, scope, casts + 1)?;
                let sql = format!("({} COLLATE \"C\")", inner.sql);
                Ok(Self { sql, bytewise: true, ..inner })
            }
            Expr::Function(_) => {
                refuse("functions are not evaluated: only comparisons of columns with constants")
            }
            Expr::Subquery(_) | Expr::Exists { .. } => {
                refuse("subqueries are not evaluated: a row must be judged by itself")
            }
            Expr::BinaryOp { op, .. } => {
                Err(Refusal::new(format!("the operator {op} is not evaluated here"), at))
            }
            _ => refuse("this is not a column, a literal or a simple cast of one"),
        }
    }

    /// The type, where it is known.
    pub(super) const fn of(&self) -> Option<&SqlType> {
        match &self.kind {
            Kind::Column(column) => Some(&column.of),
            Kind::Constant(of, _) => Some(of),
            Kind::Null | Kind::Untyped(_) => None,
        }
    }

    /// Refuses with this operand's place.
    pub(super) fn refuse(&self, why: impl Into<String>) -> Refusal {
        Refusal::new(why, self.at.clone())
    }

    fn cast(self, to: SqlType) -> Result<Self, Refusal> {
        let sql = format!("({}::{})", self.sql, sql_name(&to));
        let at = self.at.clone();
        let kind = match self.kind {
            Kind::Null => Ok(Kind::Null),
            Kind::Untyped(text) => {
                literal::read(&text, &to).map(|constant| Kind::Constant(to, constant))
            }
            Kind::Constant(from, constant) if from == to => Ok(Kind::Constant(to, constant)),
            Kind::Constant(from, constant) => {
                literal::widen(&constant, &from, &to).map(|constant| Kind::Constant(to, constant))
            }
            Kind::Column(column) => column.cast(to).map(Kind::Column),
        };
        let kind = kind.map_err(|why| Refusal::new(why, at.clone()))?;
        Ok(Self { kind, sql, at, bytewise: self.bytewise })
    }

    /// As a constant of a type, cast implicitly.
    pub(super) fn constant(&self, to: &SqlType) -> Result<Constant, Refusal> {
        let constant = match &self.kind {
            Kind::Untyped(text) => literal::read(text, to),
            Kind::Constant(from, constant) if from.number_rank().is_some() && from != to => {
                literal::widen(constant, from, to)
            }
            Kind::Constant(_, constant) => Ok(constant.clone()),
            Kind::Null | Kind::Column(_) => Err("a constant is needed here".to_owned()),
        };
        constant.map_err(|why| self.refuse(why))
    }

    /// As a side of a comparison in a family. `other` is the type of the other side.
    pub(super) fn side(
        &self,
        family: Family,
        other: Option<&SqlType>,
        scope: &Scope<'_>,
    ) -> Result<Side, Refusal> {
        match &self.kind {
            Kind::Column(column) => {
                let reader = column.reader(family, scope).map_err(|why| self.refuse(why))?;
                Ok(Side::Column { index: column.index, reader })
            }
            Kind::Constant(of, constant) if of.number_rank().is_some() => {
                let to = match family {
                    Family::Int => return Ok(Side::Constant(constant.clone())),
                    Family::Numeric => SqlType::Numeric,
                    _ => SqlType::Float8,
                };
                let widened = literal::widen(constant, of, &to).map_err(|why| self.refuse(why))?;
                Ok(Side::Constant(widened))
            }
            // A constant that was given as text keeps its blanks unless both sides are padded.
            Kind::Constant(_, Constant::Bytes(bytes)) if family == Family::Char => {
                let trimmed = super::value::trim_padding(bytes);
                Ok(Side::Constant(Constant::Bytes(trimmed.into())))
            }
            Kind::Constant(_, constant) => Ok(Side::Constant(constant.clone())),
            Kind::Untyped(text) => {
                let Some(of) = other else {
                    return Err(self.refuse("two literals are compared; a column is needed"));
                };
                literal::read(text, of).map(Side::Constant).map_err(|why| self.refuse(why))
            }
            Kind::Null => Err(self.refuse("NULL is no value to be compared")),
        }
    }
}

impl ColumnUse {
    fn cast(mut self, to: SqlType) -> Result<Self, String> {
        use SqlType::{Char, Enum, Int2, Int4, Int8, Text, Uuid, Varchar};
        let ranks = self.of.number_rank().zip(to.number_rank());
        let is_exact = match (&self.of, &to) {
            (one, other) if one == other => true,
            (Text | Varchar | Char, Text | Varchar) => true,
            // their text is that of the cell
            (Int2 | Int4 | Int8 | Uuid, Text | Varchar) => self.of == self.native,
            (Enum { .. }, Text | Varchar) => {
                return Err(
                    "a cast of an enum to text is not evaluated: of rows that nobody touches it \
                     says something else as soon as any label gets another name; compare the column \
                     with labels, by = or IN"
                        .to_owned(),
                );
            }
            (_, SqlType::Float4) => false,
            _ => ranks.is_some_and(|(from, to)| from < to),
        };
        if !is_exact {
            return Err(format!(
                "a cast of a column from {} to {to} is not evaluated: it may fail, round or \
                 depend on the session",
                self.of
            ));
        }
        if matches!(to, Text | Varchar) && !matches!(self.of, Text | Varchar | Char) {
            // not a column's collation, but the database's
            self.order = TextOrder::Locale;
        }
        self.of = to;
        Ok(self)
    }

    /// How its cells are read where it is compared in a family.
    pub(super) fn reader(&self, family: Family, scope: &Scope<'_>) -> Result<Reader, String> {
        let parser = || scope.parser(self.index);
        Ok(match (family, &self.native) {
            (Family::Text | Family::Char, SqlType::Char) => Reader::Trimmed,
            (Family::Char, _) => Reader::Trimmed,
            (Family::Text | Family::Uuid | Family::Bytea | Family::Enum, _) => Reader::Raw,
            (Family::Float, SqlType::Int2 | SqlType::Int4 | SqlType::Int8) => {
                Reader::IntAsFloat(parser())
            }
            (Family::Float, SqlType::Numeric) => {
                return Err("a numeric column is not compared with floating-point numbers: not \
                            every value has one; cast the constant to numeric"
                    .to_owned());
            }
            (Family::Numeric, SqlType::Int2 | SqlType::Int4 | SqlType::Int8) => Reader::Digits,
            _ => Reader::Parsed(parser()),
        })
    }
}

/// The column that a name means.
fn column(name: &Ident, scope: &Scope<'_>) -> Result<ColumnUse, String> {
    let folded = match name.quote_style {
        Some('"') => name.value.clone(),
        Some(_) => return Err("names are quoted with double quotes".to_owned()),
        None => {
            let folded = name.value.to_ascii_lowercase();
            if RESERVED.contains(&folded.as_str()) {
                return Err(format!(
                    "{folded} is a word of SQL; a column of this name is written \"{folded}\""
                ));
            }
            folded
        }
    };
    scope.column(&folded).map_err(|why| match why.strip_prefix("there is no column ") {
        // what is meant is a text more often than not
        Some(_) => {
            let text = quoted(&name.value);
            format!("{why} (a text is written in single quotes: {text})")
        }
        None => why,
    })
}

/// Words that the server does not take for a column (manual, "SQL Key Words").
const RESERVED: &[&str] = &[
    "all",
    "analyse",
    "analyze",
    "and",
    "any",
    "array",
    "as",
    "asc",
    "asymmetric",
    "authorization",
    "binary",
    "both",
    "case",
    "cast",
    "check",
    "collate",
    "collation",
    "column",
    "concurrently",
    "constraint",
    "create",
    "cross",
    "current_catalog",
    "current_date",
    "current_role",
    "current_schema",
    "current_time",
    "current_timestamp",
    "current_user",
    "default",
    "deferrable",
    "desc",
    "distinct",
    "do",
    "else",
    "end",
    "except",
    "false",
    "fetch",
    "for",
    "foreign",
    "freeze",
    "from",
    "full",
    "grant",
    "group",
    "having",
    "ilike",
    "in",
    "initially",
    "inner",
    "intersect",
    "into",
    "is",
    "isnull",
    "join",
    "lateral",
    "leading",
    "left",
    "like",
    "limit",
    "localtime",
    "localtimestamp",
    "natural",
    "not",
    "notnull",
    "null",
    "offset",
    "on",
    "only",
    "or",
    "order",
    "outer",
    "overlaps",
    "placing",
    "primary",
    "references",
    "returning",
    "right",
    "select",
    "session_user",
    "similar",
    "some",
    "symmetric",
    "system_user",
    "table",
    "tablesample",
    "then",
    "to",
    "trailing",
    "true",
    "union",
    "unique",
    "user",
    "using",
    "variadic",
    "verbose",
    "when",
    "where",
    "window",
    "with",
];

fn is_c(collation: &ObjectName) -> bool {
    let parts: Vec<&str> = collation
        .0
        .iter()
        .filter_map(|part| part.as_ident())
        .filter(|ident| ident.quote_style == Some('"') || ident.value == "pg_catalog")
        .map(|ident| ident.value.as_str())
        .collect();
    matches!(parts.as_slice(), ["C"] | ["pg_catalog", "C"])
}

/// A literal in any of its forms.
fn constant(expr: &Expr, scope: &Scope<'_>) -> Result<(Kind, String), String> {
    match expr {
        Expr::Value(value) => literal_of(&value.value),
        Expr::UnaryOp { expr: inner, .. } => match &**inner {
            Expr::Value(value) => match &value.value {
                Literal::Number(text, false) => signed(&format!("-{text}")),
                _ => Err(MINUS.to_owned()),
            },
            _ => Err(MINUS.to_owned()),
        },
        Expr::TypedString(typed) => match &typed.value.value {
            Literal::SingleQuotedString(text) if !typed.uses_odbc_syntax => {
                typed_literal(text, scope.type_named(&typed.data_type), &typed.data_type)
            }
            _ => Err("a literal of a type is written TYPE '…'".to_owned()),
        },
        Expr::Interval(interval) if interval.leading_field.is_none() => match &*interval.value {
            Expr::Value(value) => match &value.value {
                Literal::SingleQuotedString(text) => {
                    let constant = literal::read(text, &SqlType::Interval)?;
                    let sql = format!("({}::interval)", quoted(text));
                    Ok((Kind::Constant(SqlType::Interval, constant), sql))
                }
                _ => Err(INTERVAL.to_owned()),
            },
            _ => Err(INTERVAL.to_owned()),
        },
        _ => Err(INTERVAL.to_owned()),
    }
}

const MINUS: &str = "a minus stands before numbers only; arithmetic is not evaluated";
const INTERVAL: &str = "an interval is written INTERVAL '…'";

fn literal_of(value: &Literal) -> Result<(Kind, String), String> {
    match value {
        Literal::Number(text, false) => signed(text),
        Literal::SingleQuotedString(text) if text.contains('\0') => {
            Err("a text cannot have the character 0".to_owned())
        }
        Literal::SingleQuotedString(text) => Ok((Kind::Untyped(text.clone()), quoted(text))),
        Literal::Boolean(value) => {
            let constant = Constant::Int(i64::from(*value));
            Ok((Kind::Constant(SqlType::Bool, constant), value.to_string()))
        }
        Literal::Null => Ok((Kind::Null, "NULL".to_owned())),
        _ => Err("literals are numbers, '…', TRUE, FALSE and NULL".to_owned()),
    }
}

fn signed(text: &str) -> Result<(Kind, String), String> {
    let is_plain = |byte: u8| matches!(byte, b'0'..=b'9' | b'.' | b'e' | b'E' | b'+' | b'-');
    if !text.bytes().all(is_plain) {
        return Err(format!("{text} is not understood as a number"));
    }
    literal::number(text).map(|(of, constant)| (Kind::Constant(of, constant), format!("({text})")))
}

fn typed_literal(
    text: &str,
    of: Option<SqlType>,
    named: &DataType,
) -> Result<(Kind, String), String> {
    let of = of.ok_or_else(|| format!("a literal of the type {named} is not evaluated"))?;
    let constant = literal::read(text, &of)?;
    let sql = format!("({}::{})", quoted(text), sql_name(&of));
    Ok((Kind::Constant(of, constant), sql))
}

/// A type as it is named in SQL.
fn sql_name(of: &SqlType) -> String {
    match of {
        SqlType::Enum { namespace, name, .. } => {
            format!("{}.{}", identifier(namespace), identifier(name))
        }
        _ => of.to_string(),
    }
}
