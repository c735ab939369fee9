//! Expressions → conditions: a program's nodes, and the same as SQL.
//!
//! Follows the server's grammar and its rewriting of `BETWEEN`, `IN` and `IS`. **Invariant:** what
//! is not listed here is refused; nothing is approximated.

use sqlparser::ast::{BinaryOperator, Expr, InTarget, UnaryOperator, Value as Literal};

use super::cell_test::{Comparison, Like, Membership, Operator, Same, Side};
use super::like::Pattern;
use super::operand::{ColumnUse, Kind, Operand};
use super::scope::{Scope, TextOrder};
use super::sql_type::{Family, SqlType};
use super::value::Constant;
use super::{Refusal, place};
use crate::filter::{Node, Truth};

/// Conditions within conditions.
const DEEPEST: u8 = 160;
/// So many things that are wrong with parts of a chain are told.
const MOST_REFUSALS: usize = 8;

/// A condition, ready to run and ready to be sent.
#[derive(Debug)]
pub(super) struct Condition {
    pub(super) node: Node,
    pub(super) sql: String,
}

impl Condition {
    fn not(self, negated: bool) -> Self {
        if negated {
            Self { sql: format!("(NOT {})", self.sql), node: Node::Not(Box::new(self.node)) }
        } else {
            self
        }
    }
}

/// Makes conditions of expressions.
pub(super) struct Compiler<'a> {
    pub(super) scope: &'a Scope<'a>,
    /// The columns that are read, each once.
    pub(super) columns: Vec<usize>,
}

impl Compiler<'_> {
    /// Reads an expression as a condition.
    pub(super) fn condition(&mut self, expr: &Expr, depth: u8) -> Result<Condition, Refusal> {
        if depth > DEEPEST {
            return Err(Refusal::new("it is nested too deeply", place(expr)));
        }
        let deeper = depth + 1;
        match expr {
            Expr::Nested(inner) => self.condition(inner, deeper),
            Expr::BinaryOp { op: BinaryOperator::And | BinaryOperator::Or, .. } => {
                self.chain(expr, deeper)
            }
            Expr::BinaryOp { left, op, right } => {
                let Some(operator) = operator(op) else {
                    let instead = match op {
                        BinaryOperator::StringConcat => " (for one or the other write OR)",
                        _ => "",
                    };
                    let why = format!("the operator {op} is not evaluated{instead}");
                    return Err(Refusal::new(why, place(expr)));
                };
                let (left, right) = (self.operand(left)?, self.operand(right)?);
                self.comparison(operator, &left, &right)
            }
            Expr::UnaryOp { op: UnaryOperator::Not, expr: inner } => {
                Ok(self.condition(inner, deeper)?.not(true))
            }
            Expr::IsNull(inner) => self.is_null(inner, false, deeper),
            Expr::IsNotNull(inner) => self.is_null(inner, true, deeper),
            Expr::IsTrue(inner) => self.is(inner, Some(true), false, deeper),
            Expr::IsNotTrue(inner) => self.is(inner, Some(true), true, deeper),
            Expr::IsFalse(inner) => self.is(inner, Some(false), false, deeper),
            Expr::IsNotFalse(inner) => self.is(inner, Some(false), true, deeper),
            Expr::IsUnknown(inner) => self.is(inner, None, false, deeper),
            Expr::IsNotUnknown(inner) => self.is(inner, None, true, deeper),
            Expr::IsDistinctFrom(left, right) => self.same(left, right, true),
            Expr::IsNotDistinctFrom(left, right) => self.same(left, right, false),
            Expr::In { expr: asked, target: InTarget::List(list), negated, global: false } => {
                Ok(self.membership(asked, list)?.not(*negated))
            }
            Expr::In { .. } => Err(Refusal::new("IN is evaluated with a list only", place(expr))),
            Expr::Between { expr: asked, negated, low, high } => {
                let (asked, low) = (self.operand(asked)?, self.operand(low)?);
                let high = self.operand(high)?;
                let from = self.comparison(Operator::GreaterOrEqual, &asked, &low)?;
                let to = self.comparison(Operator::LessOrEqual, &asked, &high)?;
                let sql = format!("({} BETWEEN {} AND {})", asked.sql, low.sql, high.sql);
                let node = Node::All(Box::new([from.node, to.node]));
                Ok(Condition { node, sql }.not(*negated))
            }
            Expr::Like { negated, any: false, expr: asked, pattern, escape_char } => {
                Ok(self.like(asked, pattern, escape_char.as_deref())?.not(*negated))
            }
            Expr::ILike { .. } => Err(Refusal::new(
                "ILIKE is not evaluated: what it takes for the same letter depends on the locale",
                place(expr),
            )),
            Expr::SimilarTo { .. } | Expr::RLike { .. } => {
                Err(Refusal::new("patterns other than LIKE are not evaluated", place(expr)))
            }
            _ => self.truth_value(expr),
        }
    }

    /// `a AND b AND c`, without a level for each.
    fn chain(&mut self, expr: &Expr, depth: u8) -> Result<Condition, Refusal> {
        let Expr::BinaryOp { op, .. } = expr else { return self.condition(expr, depth) };
        let mut parts = Vec::new();
        let mut rest = expr;
        while let Expr::BinaryOp { left, op: next, right } = rest
            && next == op
        {
            parts.push(&**right);
            rest = left;
        }
        parts.push(rest);
        let mut nodes = Vec::with_capacity(parts.len());
        let mut texts = Vec::with_capacity(parts.len());
        let mut refused = Vec::new();
        for part in parts.into_iter().rev() {
            match self.condition(part, depth) {
                Ok(Condition { node, sql }) => {
                    nodes.push(node);
                    texts.push(sql);
                }
                Err(refusal) if refused.len() < MOST_REFUSALS => refused.push(refusal),
                Err(_) => {}
            }
        }
        if let Some(refusal) = Refusal::joined(refused) {
            return Err(refusal);
        }
        let nodes = nodes.into_boxed_slice();
        Ok(match op {
            BinaryOperator::And => {
                Condition { node: Node::All(nodes), sql: format!("({})", texts.join(" AND ")) }
            }
            _ => Condition { node: Node::Any(nodes), sql: format!("({})", texts.join(" OR ")) },
        })
    }

    /// A column or literal of the type boolean.
    fn truth_value(&mut self, expr: &Expr) -> Result<Condition, Refusal> {
        let operand = self.operand(expr)?;
        let sql = operand.sql.clone();
        let node = match &operand.kind {
            Kind::Null => Node::Always(Truth::Unknown),
            Kind::Constant(SqlType::Bool, Constant::Int(value)) => {
                Node::Always(Truth::of(*value != 0))
            }
            Kind::Column(ColumnUse { of: SqlType::Bool, .. }) => {
                let left = operand.side(Family::Bool, None, self.scope)?;
                let right = Side::Constant(Constant::Int(1));
                Node::Test(Box::new(Comparison { operator: Operator::Equal, left, right }))
            }
            _ => return Err(operand.refuse("a condition is needed here, or a boolean column")),
        };
        Ok(Condition { node, sql })
    }

    fn operand(&mut self, expr: &Expr) -> Result<Operand, Refusal> {
        let operand = Operand::read(expr, self.scope, 0)?;
        if let Kind::Column(ColumnUse { index, .. }) = operand.kind
            && !self.columns.contains(&index)
        {
            self.columns.push(index);
        }
        Ok(operand)
    }

    fn comparison(
        &self,
        operator: Operator,
        left: &Operand,
        right: &Operand,
    ) -> Result<Condition, Refusal> {
        let sql = format!("({} {} {})", left.sql, operator.as_str(), right.sql);
        if matches!(left.kind, Kind::Null) || matches!(right.kind, Kind::Null) {
            return Ok(Condition { node: Node::Always(Truth::Unknown), sql });
        }
        let (left, right) = self.sides(left, right, operator.is_equality())?;
        Ok(Condition { node: Node::Test(Box::new(Comparison { operator, left, right })), sql })
    }

    /// Both sides in the family in which the server compares them.
    fn sides(
        &self,
        left: &Operand,
        right: &Operand,
        is_equality: bool,
    ) -> Result<(Side, Side), Refusal> {
        let is_constant = |operand: &Operand| !matches!(operand.kind, Kind::Column(_));
        if is_constant(left) && is_constant(right) {
            return Err(left.refuse("two constants are compared; a column is needed"));
        }
        let family = match (left.of(), right.of()) {
            (Some(one), Some(other)) => one.common_family(other),
            (Some(one), None) | (None, Some(one)) => one.family(),
            (None, None) => None,
        };
        let name = |of: Option<&SqlType>| {
            of.map_or_else(|| "a literal".to_owned(), |of| format!("the type {of}"))
        };
        let Some(family) = family else {
            return Err(left.refuse(format!(
                "{} is not compared with {}",
                name(left.of()),
                name(right.of())
            )));
        };
        if family == Family::Enum && !is_equality {
            return Err(left.refuse(
                "an enum's labels are put in order by its definition, which no change shows; only \
                 equality is evaluated",
            ));
        }
        check_text(family, is_equality, &[left, right])?;
        let of_left = left.side(family, right.of(), self.scope)?;
        let of_right = right.side(family, left.of(), self.scope)?;
        Ok((of_left, of_right))
    }

    fn same(&mut self, left: &Expr, right: &Expr, distinct: bool) -> Result<Condition, Refusal> {
        let (left, right) = (self.operand(left)?, self.operand(right)?);
        let sql = format!("({} IS NOT DISTINCT FROM {})", left.sql, right.sql);
        let node = match (&left.kind, &right.kind) {
            (Kind::Column(column), Kind::Null) | (Kind::Null, Kind::Column(column)) => {
                if matches!(column.of, SqlType::Other { .. }) {
                    return Err(
                        left.refuse(format!("values of the type {} are not compared", column.of))
                    );
                }
                Node::IsNull(column.index)
            }
            _ => {
                let (left, right) = self.sides(&left, &right, true)?;
                Node::Test(Box::new(Same { left, right }))
            }
        };
        Ok(Condition { node, sql }.not(distinct))
    }

    fn is(
        &mut self,
        inner: &Expr,
        asked: Option<bool>,
        negated: bool,
        depth: u8,
    ) -> Result<Condition, Refusal> {
        let Condition { node, sql } = self.condition(inner, depth)?;
        let word = match asked {
            Some(true) => "TRUE",
            Some(false) => "FALSE",
            None => "UNKNOWN",
        };
        let sql = format!("({sql} IS {word})");
        Ok(Condition { node: Node::Is(Box::new(node), asked), sql }.not(negated))
    }

    fn is_null(&mut self, inner: &Expr, negated: bool, depth: u8) -> Result<Condition, Refusal> {
        let mut bare = inner;
        while let Expr::Nested(inside) = bare {
            bare = inside;
        }
        let is_operand = matches!(
            bare,
            Expr::Identifier(_)
                | Expr::CompoundIdentifier(_)
                | Expr::Cast { .. }
                | Expr::Collate { .. }
                | Expr::Function(_)
        );
        if !is_operand {
            let Condition { node, sql } = self.condition(bare, depth)?;
            let sql = format!("({sql} IS NULL)");
            return Ok(Condition { node: Node::Is(Box::new(node), None), sql }.not(negated));
        }
        let operand = self.operand(bare)?;
        let Kind::Column(column) = &operand.kind else {
            return Err(operand.refuse("IS NULL is asked of a literal; a column is needed"));
        };
        if matches!(column.of, SqlType::Other { is_composite: true, .. }) {
            return Err(operand.refuse("of a row type, IS NULL asks for its fields"));
        }
        // A row type's IS NOT NULL is not the contrary; of all others it is.
        let sql = format!("({} IS NULL)", operand.sql);
        Ok(Condition { node: Node::IsNull(column.index), sql }.not(negated))
    }

    fn membership(&mut self, asked: &Expr, list: &[Expr]) -> Result<Condition, Refusal> {
        let asked = self.operand(asked)?;
        let list =
            list.iter().map(|expr| self.operand(expr)).collect::<Result<Vec<_>, Refusal>>()?;
        let texts: Vec<&str> = list.iter().map(|operand| operand.sql.as_str()).collect();
        let sql = format!("({} IN ({}))", asked.sql, texts.join(", "));
        let is_column = |operand: &&Operand| matches!(operand.kind, Kind::Column(_));
        let mut nodes = Vec::new();
        for operand in list.iter().filter(is_column) {
            nodes.push(self.comparison(Operator::Equal, &asked, operand)?.node);
        }
        let constants: Vec<&Operand> = list.iter().filter(|one| !is_column(one)).collect();
        match constants.as_slice() {
            [] => {}
            // One is compared as by `=`; several become one list of one type.
            [one] => nodes.push(self.comparison(Operator::Equal, &asked, one)?.node),
            several => nodes.push(self.constants(&asked, several)?),
        }
        Ok(Condition { node: Node::Any(nodes.into()), sql })
    }

    fn constants(&self, asked: &Operand, constants: &[&Operand]) -> Result<Node, Refusal> {
        let (Kind::Column(column), Some(of)) = (&asked.kind, asked.of()) else {
            return Err(asked.refuse("IN is asked of a constant; a column is needed"));
        };
        let mut common = of.clone();
        for operand in constants {
            if let Some(other) = operand.of() {
                common = common.common_type(other).ok_or_else(|| {
                    operand.refuse(format!("the types {common} and {other} are mixed in a list"))
                })?;
            }
        }
        let family = of.common_family(&common).ok_or_else(|| {
            asked.refuse(format!("the type {of} is not compared with the type {common}"))
        })?;
        let mut all = vec![asked];
        all.extend(constants);
        check_text(family, true, &all)?;
        let mut values = Vec::with_capacity(constants.len());
        let mut has_null = false;
        for operand in constants {
            if matches!(operand.kind, Kind::Null) {
                has_null = true;
                continue;
            }
            // First as the list's type, with its rounding, then as what is compared.
            let kind = Kind::Constant(common.clone(), operand.constant(&common)?);
            let cast = Operand { kind, ..(*operand).clone() };
            match cast.side(family, None, self.scope)? {
                Side::Constant(constant) => values.push(constant),
                Side::Column { .. } => return Err(operand.refuse("a constant is needed here")),
            }
        }
        let reader = column.reader(family, self.scope).map_err(|why| asked.refuse(why))?;
        Ok(Node::Test(Box::new(Membership::new((column.index, reader), values, has_null))))
    }

    fn like(
        &mut self,
        asked: &Expr,
        pattern: &Expr,
        escape: Option<&Expr>,
    ) -> Result<Condition, Refusal> {
        let asked = self.operand(asked)?;
        let pattern = self.operand(pattern)?;
        let escape_sql;
        let escape = match escape {
            None => {
                escape_sql = String::new();
                Some('\\')
            }
            Some(Expr::Value(value)) => {
                let Literal::SingleQuotedString(text) = &value.value else {
                    return Err(pattern.refuse("ESCAPE is followed by a text"));
                };
                let mut chars = text.chars();
                let escape = chars.next();
                if chars.next().is_some() {
                    return Err(pattern.refuse("ESCAPE is followed by one character, or none"));
                }
                escape_sql =
                    format!(" ESCAPE {}", crate::sources::postgres::connection::literal(text));
                escape
            }
            Some(_) => return Err(pattern.refuse("ESCAPE is followed by a text")),
        };
        let sql = format!("({} LIKE {}{escape_sql})", asked.sql, pattern.sql);
        let text = match &pattern.kind {
            Kind::Null => return Ok(Condition { node: Node::Always(Truth::Unknown), sql }),
            Kind::Untyped(text) => text.clone(),
            Kind::Constant(SqlType::Text | SqlType::Varchar, Constant::Bytes(bytes)) => {
                String::from_utf8_lossy(bytes).into_owned()
            }
            Kind::Constant(..) | Kind::Column(_) => {
                return Err(pattern.refuse("the pattern of LIKE is a text in quotes"));
            }
        };
        let Kind::Column(column) = &asked.kind else {
            return Err(asked.refuse("LIKE is asked of a constant; a column is needed"));
        };
        if !matches!(column.of, SqlType::Text | SqlType::Varchar | SqlType::Char) {
            return Err(asked.refuse(format!("LIKE is not asked of the type {}", column.of)));
        }
        check_text(Family::Text, true, &[&asked])?;
        let Some(pattern) = Pattern::parse(&text, escape) else {
            return Err(pattern.refuse("the pattern ends with its escape character"));
        };
        // A char(n) is matched with its padding, unless it was cast.
        let reader = match (&column.native, &column.of) {
            (SqlType::Char, SqlType::Char) => super::value::Reader::Raw,
            _ => column.reader(Family::Text, self.scope).map_err(|why| asked.refuse(why))?,
        };
        let test = Like { index: column.index, reader, pattern };
        Ok(Condition { node: Node::Test(Box::new(test)), sql })
    }
}

/// Refuses texts whose equality or order is not that of their bytes.
fn check_text(family: Family, is_equality: bool, operands: &[&Operand]) -> Result<(), Refusal> {
    if !family.is_text() || operands.iter().any(|operand| operand.bytewise) {
        return Ok(());
    }
    for operand in operands {
        let Kind::Column(column) = &operand.kind else { continue };
        match column.order {
            TextOrder::Bytewise => {}
            TextOrder::Locale if is_equality => {}
            TextOrder::Locale => {
                return Err(operand.refuse(
                    "texts are put in order by the column's collation, which is not C; write \
                     COLLATE \"C\" behind it to compare bytes",
                ));
            }
            TextOrder::Loose => {
                return Err(operand.refuse(
                    "the column's collation is non-deterministic: different texts can be equal",
                ));
            }
            TextOrder::Unknown => {
                return Err(operand.refuse("the column's collation is not known"));
            }
        }
    }
    Ok(())
}

fn operator(op: &BinaryOperator) -> Option<Operator> {
    Some(match op {
        BinaryOperator::Eq => Operator::Equal,
        BinaryOperator::NotEq => Operator::NotEqual,
        BinaryOperator::Lt => Operator::Less,
        BinaryOperator::LtEq => Operator::LessOrEqual,
        BinaryOperator::Gt => Operator::Greater,
        BinaryOperator::GtEq => Operator::GreaterOrEqual,
        _ => return None,
    })
}
