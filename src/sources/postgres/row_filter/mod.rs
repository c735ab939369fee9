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

mod applied;
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
use sqlparser::keywords::Keyword;
use sqlparser::parser::{Parser, ParserError};
use sqlparser::tokenizer::{Token, TokenWithSpan, Tokenizer};

pub(super) use self::applied::{Applied, Described, Labels, enum_of, renamed};
use self::condition::{Compiler, Condition};
pub(super) use self::rules::{BoundFilter, images_fault, stopped};
pub use self::rules::{Pushdown, RowFilters};
pub(super) use self::scope::Scope;
pub use self::scope::TextOrder;
use crate::change::TableVersion;
use crate::error::{Code, Fault};
use crate::filter::Node;

/// The stack on which a text is read.
const STACK: usize = 64 << 20;
/// How many levels the parser goes down.
const STEPS: usize = 200;

/// What a text may be. Bounds the work and the depth of what a parser makes of it.
#[derive(Clone, Copy)]
struct Limits {
    bytes: usize,
    /// Parentheses within parentheses, and `NOT` behind `NOT`.
    nested: usize,
}

/// For what somebody wrote.
const WRITTEN: Limits = Limits { bytes: 16 << 10, nested: 50 };
/// For what is made of that: two filters, one or the other.
const JOINED: Limits = Limits { bytes: 64 << 10, nested: 56 };

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

    /// Several as one, which tells all of them.
    fn joined(several: Vec<Self>) -> Option<Self> {
        several.into_iter().reduce(|one, other| Self {
            why: format!("{}; {}", one.sentence(), other.why),
            at: other.at,
        })
    }

    fn sentence(&self) -> String {
        let at = if self.at.is_empty() { String::new() } else { format!(", at {}", self.at) };
        format!("{}{at}", self.why)
    }

    fn into_fault(self) -> Fault {
        Code::FilterUnsupported.fault(self.sentence())
    }
}

/// Sees that a text is an expression at all.
///
/// # Errors
/// What the parser says.
pub(super) fn check_syntax(text: &str) -> Result<(), Fault> {
    on_own_stack(|| parse(text, WRITTEN).map(drop)).map_err(Refusal::into_fault)
}

/// Compiles a predicate against a table version.
///
/// # Errors
/// `FILTER-UNSUPPORTED-PREDICATE` says what cannot be evaluated, and where it stands.
pub(super) fn compile(text: &str, scope: &Scope<'_>) -> Result<Predicate, Fault> {
    compile_text(text, scope)
        .map_err(|refusal| refusal.into_fault().at_table(scope.version.table.to_string()))
}

/// The columns that a text names, also if it is not understood. A word that begins a constant
/// (`DATE '…'`), names a type or calls a function is none.
pub(super) fn named_columns(text: &str, version: &TableVersion) -> Vec<usize> {
    let dialect = PostgreSqlDialect {};
    let limit = text.len().min(WRITTEN.bytes);
    let text = text.get(..text.floor_char_boundary(limit)).unwrap_or_default();
    let Ok(tokens) = Tokenizer::new(&dialect, text).tokenize() else { return Vec::new() };
    let tokens: Vec<Token> =
        tokens.into_iter().filter(|token| !matches!(token, Token::Whitespace(_))).collect();
    let mut columns = Vec::new();
    for (at, token) in tokens.iter().enumerate() {
        let Token::Word(word) = token else { continue };
        let before = at.checked_sub(1).and_then(|before| tokens.get(before));
        let is_type = match before {
            Some(Token::DoubleColon) => true,
            Some(Token::Word(word)) => word.keyword == Keyword::AS,
            _ => false,
        };
        let behind = tokens.get(at + 1);
        if is_type || matches!(behind, Some(Token::LParen | Token::SingleQuotedString(_))) {
            continue;
        }
        let name = match word.quote_style {
            None => word.value.to_ascii_lowercase(),
            Some(_) => word.value.clone(),
        };
        let index = version.columns.iter().position(|column| column.name == name);
        columns.extend(index.filter(|index| !columns.contains(index)));
    }
    columns
}

fn compile_text(text: &str, scope: &Scope<'_>) -> Result<Predicate, Refusal> {
    on_own_stack(|| {
        let expr = parse(text, JOINED)?;
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

fn parse(text: &str, limits: Limits) -> Result<Expr, Refusal> {
    let Limits { bytes: longest, nested } = limits;
    if text.len() > longest {
        let why = format!("it has {} bytes, more than {longest}", text.len());
        return Err(Refusal::new(why, at_byte(text, longest)));
    }
    let dialect = PostgreSqlDialect {};
    let malformed =
        |error: &dyn std::fmt::Display| Refusal::new(format!("it is no SQL: {error}"), "");
    let tokens = Tokenizer::new(&dialect, text)
        .tokenize_with_location()
        .map_err(|error| malformed(&error))?;
    // the parser takes the one for =, the server does not; the other is of arrays and ranges
    let odd = tokens.iter().find_map(|token| match token.token {
        Token::DoubleEq => Some((token, "the operator == is not evaluated")),
        Token::Overlap => Some((token, "the operator && is not evaluated: write AND")),
        _ => None,
    });
    if let Some((odd, why)) = odd {
        return Err(Refusal::new(why, at_token(odd)));
    }
    let is_blank = |token: &&TokenWithSpan| matches!(token.token, Token::Whitespace(_));
    if let Some(first) = tokens.iter().find(|token| !is_blank(token))
        && matches!(&first.token, Token::Word(word)
            if word.keyword == Keyword::WHERE && word.quote_style.is_none())
    {
        let why = "a filter is the condition alone, without the word WHERE";
        return Err(Refusal::new(why, at_token(first)));
    }
    if let Some(at) = too_deep(&tokens, nested) {
        let why = format!("parentheses and NOT are nested more than {nested} deep");
        return Err(Refusal::new(why, at));
    }
    let mut parser =
        Parser::new(&dialect).with_recursion_limit(STEPS).with_tokens_with_locations(tokens);
    let expr = match parser.parse_expr() {
        Ok(expr) => expr,
        Err(ParserError::RecursionLimitExceeded) => {
            return Err(Refusal::new("it is nested too deeply", at_token(&parser.peek_token())));
        }
        Err(error) if parser.peek_token().token == Token::EOF => {
            let text_end = at_byte(text, text.len());
            let end = if error.to_string().contains(" at Line") { "" } else { &text_end };
            return Err(Refusal::new(format!("it is no SQL: {error}"), end));
        }
        Err(error) => return Err(malformed(&error)),
    };
    let rest = parser.peek_token();
    if rest.token == Token::SemiColon {
        return Err(Refusal::new("a filter is one condition, without ';'", at_token(&rest)));
    }
    if rest.token != Token::EOF {
        return Err(Refusal::new(
            format!("'{}' is more than one condition", rest.token),
            at_token(&rest),
        ));
    }
    Ok(expr)
}

/// Where the text is nested deeper than it may be: in parentheses, and in `NOT` behind `NOT`.
fn too_deep(tokens: &[TokenWithSpan], most: usize) -> Option<String> {
    let (mut open, mut nots) = (0_usize, 0_usize);
    for token in tokens {
        match &token.token {
            Token::Whitespace(_) => continue,
            Token::LParen => open += 1,
            Token::RParen => open = open.saturating_sub(1),
            Token::Word(word) if word.keyword == Keyword::NOT => nots += 1,
            _ => nots = 0,
        }
        if open + nots > most {
            return Some(at_token(token));
        }
    }
    None
}

fn at_token(token: &TokenWithSpan) -> String {
    format!("line {}, column {}", token.span.start.line, token.span.start.column)
}

/// The line and column of a byte.
fn at_byte(text: &str, byte: usize) -> String {
    let (mut line, mut column) = (1, 1);
    for (_, c) in text.char_indices().take_while(|(at, _)| *at < byte) {
        (line, column) = if c == '\n' { (line + 1, 1) } else { (line, column + 1) };
    }
    format!("line {line}, column {column}")
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
