//! What a failed request means: ask again, or a person must act.
//!
//! The client library tells a status only in its message and the registry's own answer as the
//! error's source; both are read here and nowhere else. Error codes: Confluent Schema Registry API,
//! "Errors".

use std::error::Error as _;

use schema_registry_converter::error::SRCError;
use schema_registry_converter::schema_registry_common::RawError;

use crate::error::{Code, Fault, chain};

/// A registry's reason may quote whole schemas; this much of it is kept.
const REASON: usize = 4000;

/// What to do after a failed request.
#[derive(Debug)]
pub(super) enum Outcome {
    /// The world may heal: ask again. The text says what happened.
    Again(String),
    /// Asking again would not help.
    Refused(Fault),
}

/// Judges an error of the client library. `what` is what was asked for, `the schema for subject 's'`;
/// for a look-up, that it is not there is an answer.
pub(super) fn judge(error: &SRCError, what: &str, is_lookup: bool) -> Outcome {
    let source = error.source();
    let answer = source.and_then(|source| source.downcast_ref::<RawError>());
    let Some(status) = status(&error.error) else {
        let cause = source.map_or_else(String::new, |source| format!(": {}", chain(source)));
        return Outcome::Again(format!("{}{cause}", error.error));
    };
    // The library gives code 0 where the body was not the registry's.
    let answer = answer.filter(|answer| answer.error_code != 0);
    let (number, reason) = match answer {
        // The fault's text goes on behind it.
        Some(answer) => (answer.error_code, cut(&answer.message).trim_end_matches(['.', ' '])),
        None => (0, "the answer does not have the registry's form"),
    };
    let text = |verdict: &str| match number {
        0 => format!("the registry {verdict} {what} (HTTP {status}): {reason}"),
        _ => format!("the registry {verdict} {what} (HTTP {status}, error {number}): {reason}"),
    };
    match status {
        409 => Outcome::Refused(Code::SchemaIncompatible.fault(text("refuses as incompatible"))),
        // Operation not permitted: the subject or the whole registry is read-only.
        422 if number == 42_205 => Outcome::Refused(Code::RegistryRefused.fault(text("refuses"))),
        422 => Outcome::Refused(Code::SchemaInvalid.fault(text("refuses as invalid"))),
        // Not the registry's "no such schema" but its web server's "no such address": the address is
        // another one's, or a proxy answers while the registry behind it is away or just starting.
        404 if answer.is_none() || number == 404 => Outcome::Again(format!(
            "{}; is schema.registry.url the whole address of the registry?",
            text("does not know")
        )),
        404 if is_lookup => {
            Outcome::Refused(Code::SchemaNotRegistered.fault(text("does not have")))
        }
        404 => Outcome::Refused(
            Code::RegistryRefused
                .fault(text("does not know"))
                .hint("Check that schema.registry.url is the registry that is meant."),
        ),
        408 | 425 | 429 | 500.. => Outcome::Again(text("cannot take")),
        _ => Outcome::Refused(Code::RegistryRefused.fault(text("refuses"))),
    }
}

/// The status in the library's message.
fn status(message: &str) -> Option<u16> {
    let (_, behind) = message.rsplit_once("failed with status ")?;
    behind.split(' ').next()?.parse().ok()
}

fn cut(text: &str) -> &str {
    let end = text.char_indices().nth(REASON).map_or(text.len(), |(at, _)| at);
    text.get(..end).unwrap_or_default()
}
