//! Row filters in PostgreSQL's dialect: a predicate's text → a program over cells.
//!
//! ```text
//! text → parser (sqlparser) → operands, typed against a table version → conditions → filter::Node
//!                                                                      └→ the same as SQL, for
//!                                                                         snapshots and publications
//! ```
//!
//! Once per table version. Compares only what it compares as the server does, and refuses the rest
//! with the reason and the place in the text. Asks nobody: collations and types come from the
//! catalogue's facts. **Invariants:** what is sent to the server is written anew from what was
//! understood here, so that both judge by the same predicate; a text of any form is compiled or
//! refused, never a panic.

mod cell_test;
mod condition;
mod like;
mod literal;
mod operand;
pub mod probe;
mod rules;
mod scope;
mod sql_type;
mod value;

#[cfg(test)]
mod tests;

use sqlparser::ast::{Expr, Spanned as _};
use sqlparser::dialect::PostgreSqlDialect;
use sqlparser::parser::Parser;
use sqlparser::tokenizer::{Token, Tokenizer};

use self::condition::{Compiler, Condition};
pub(super) use self::rules::{BoundFilter, images_fault, stopped};
pub use self::rules::{Pushdown, RowFilters};
pub(super) use self::scope::Scope;
pub use self::scope::TextOrder;
use crate::error::{Code, Fault};
use crate::filter::Node;

/// The longest text. Bounds the work and the depth of what a parser makes of it.
const LONGEST: usize = 16 << 10;
/// The stack on which a text is read.
const STACK: usize = 32 << 20;
/// Parentheses within parentheses.
const DEEPEST: usize = 40;

/// A predicate over one table version.
#[derive(Debug)]
pub(super) struct Predicate {
    /// What runs.
    pub(super) node: Node,
    /// The columns that it reads.
    pub(super) columns: Vec<usize>,
    /// The same, as SQL.
    pub(super) sql: String,
}

/// Why a predicate is refused, and where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Refusal {
    why: String,
    at: String,
}

impl Refusal {
    fn new(why: impl Into<String>, at: impl Into<String>) -> Self {
        Self { why: why.into(), at: at.into() }
    }

    fn into_fault(self) -> Fault {
        let at = if self.at.is_empty() { String::new() } else { format!(", at {}", self.at) };
        Code::FilterUnsupported.fault(format!("{}{at}", self.why))
    }
}

/// Sees that a text is an expression at all.
///
/// # Errors
/// What the parser says.
pub(super) fn check_syntax(text: &str) -> Result<(), Fault> {
    on_own_stack(|| parse(text).map(drop)).map_err(Refusal::into_fault)
}

/// Compiles a predicate against a table version.
///
/// # Errors
/// `FILTER-UNSUPPORTED-PREDICATE` says what cannot be evaluated, and where it stands.
pub(super) fn compile(text: &str, scope: &Scope<'_>) -> Result<Predicate, Fault> {
    compile_text(text, scope)
        .map_err(|refusal| refusal.into_fault().at_table(scope.version.table.to_string()))
}

fn compile_text(text: &str, scope: &Scope<'_>) -> Result<Predicate, Refusal> {
    on_own_stack(|| {
        let expr = parse(text)?;
        let mut compiler = Compiler { scope, columns: Vec::new() };
        let Condition { node, sql } = compiler.condition(&expr, 0)?;
        Ok(Predicate { node, columns: compiler.columns, sql })
    })
}

/// Works on a stack that is large enough for the deepest text. The parser goes a level down for
/// each part within a part, on frames of tens of kilobytes; a chain is dropped a level at a time.
/// An overflow would end the process.
fn on_own_stack<T: Send>(work: impl FnOnce() -> Result<T, Refusal> + Send) -> Result<T, Refusal> {
    let lost = || Refusal::new("it cannot be looked at now: no thread can be had", "");
    std::thread::scope(|scope| {
        let worker = std::thread::Builder::new().name("predicate".to_owned()).stack_size(STACK);
        let worker = worker.spawn_scoped(scope, work).map_err(|_error| lost())?;
        worker.join().map_err(|_panic| lost())?
    })
}

fn parse(text: &str) -> Result<Expr, Refusal> {
    if text.len() > LONGEST {
        return Err(Refusal::new(format!("it has more than {LONGEST} bytes"), ""));
    }
    let dialect = PostgreSqlDialect {};
    let malformed =
        |error: &dyn std::fmt::Display| Refusal::new(format!("it is no SQL: {error}"), "");
    let tokens = Tokenizer::new(&dialect, text)
        .tokenize_with_location()
        .map_err(|error| malformed(&error))?;
    // the parser takes it for =, the server does not
    if let Some(odd) = tokens.iter().find(|token| token.token == Token::DoubleEq) {
        let at = format!("line {}, column {}", odd.span.start.line, odd.span.start.column);
        return Err(Refusal::new("the operator == is not evaluated", at));
    }
    let mut parser =
        Parser::new(&dialect).with_recursion_limit(DEEPEST).with_tokens_with_locations(tokens);
    let expr = parser.parse_expr().map_err(|error| malformed(&error))?;
    let rest = parser.peek_token();
    if rest.token != Token::EOF {
        let at = format!("line {}, column {}", rest.span.start.line, rest.span.start.column);
        return Err(Refusal::new(format!("'{}' is more than one condition", rest.token), at));
    }
    Ok(expr)
}

/// Where an expression begins in the text; empty where the parser does not tell.
fn place(expr: &Expr) -> String {
    let mut first = expr;
    // Down to its first part, for the spans of whole expressions are found by recursion.
    loop {
        first = match first {
            Expr::BinaryOp { left: inner, .. }
            | Expr::IsNull(inner)
            | Expr::IsNotNull(inner)
            | Expr::IsTrue(inner)
            | Expr::IsNotTrue(inner)
            | Expr::IsFalse(inner)
            | Expr::IsNotFalse(inner)
            | Expr::IsUnknown(inner)
            | Expr::IsNotUnknown(inner)
            | Expr::IsDistinctFrom(inner, _)
            | Expr::IsNotDistinctFrom(inner, _)
            | Expr::Nested(inner)
            | Expr::In { expr: inner, .. }
            | Expr::Between { expr: inner, .. }
            | Expr::Like { expr: inner, .. }
            | Expr::ILike { expr: inner, .. }
            | Expr::SimilarTo { expr: inner, .. }
            | Expr::Cast { expr: inner, .. }
            | Expr::Collate { expr: inner, .. }
            | Expr::UnaryOp { expr: inner, .. } => inner,
            _ => break,
        };
    }
    let start = first.span().start;
    if start.line == 0 {
        return String::new();
    }
    format!("line {}, column {}", start.line, start.column)
}
