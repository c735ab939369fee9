//! References in values, `${provider:path:key}`, replaced by what they stand for.
//!
//! Replaced text goes to typed settings only: it is never stored, shown or logged. Knows no key
//! but its own. **Invariant:** a reference is resolved or is a fault that names it; it never passes
//! as literal text. (Kafka Connect lets unknown ones pass.)

use std::borrow::Cow;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use regex::Regex;

use super::properties;

/// Looks an environment variable up.
pub type Environment = Arc<dyn Fn(&str) -> Option<String> + Send + Sync>;

/// The environment of this process.
pub fn process_environment() -> Environment {
    #[expect(clippy::disallowed_methods, reason = "this is the place through which settings come")]
    Arc::new(|name| std::env::var(name).ok())
}

/// What a provider reads, and what it may read.
#[derive(Clone, Debug)]
pub enum ProviderKind {
    /// `${file:<path>:<key>}`: a value of a properties file.
    File {
        /// Only below these, if there are any.
        allowed: Vec<PathBuf>,
    },
    /// `${dir:<directory>:<file>}`: the content of a file.
    Directory {
        /// Only below these, if there are any.
        allowed: Vec<PathBuf>,
    },
    /// `${env:<name>}`: an environment variable.
    Environment {
        /// Only names that match, if there is one.
        allowed: Option<Regex>,
    },
}

/// The providers that a worker offers, by the names it gave them.
#[derive(Clone)]
pub struct Providers {
    by_name: Vec<(String, ProviderKind)>,
    environment: Environment,
}

impl Providers {
    /// No provider: every reference is a fault.
    pub fn none() -> Self {
        Self { by_name: Vec::new(), environment: Arc::new(|_| None) }
    }

    /// These providers.
    pub const fn new(by_name: Vec<(String, ProviderKind)>, environment: Environment) -> Self {
        Self { by_name, environment }
    }

    /// Replaces every reference in a value.
    ///
    /// # Errors
    /// The first reference that cannot be resolved, and why.
    pub fn resolve<'v>(&self, value: &'v str) -> Result<Cow<'v, str>, String> {
        let mut resolved = String::new();
        let mut rest = value;
        while let Some((before, reference, after)) = next_reference(rest) {
            resolved.push_str(before);
            let text = self.look_up(reference).map_err(|why| {
                format!("the reference ${{{reference}}} cannot be resolved: {why}")
            })?;
            resolved.push_str(&text);
            rest = after;
        }
        if rest.len() == value.len() {
            return Ok(Cow::Borrowed(value));
        }
        resolved.push_str(rest);
        Ok(Cow::Owned(resolved))
    }

    fn look_up(&self, reference: &str) -> Result<String, String> {
        let (provider, rest) = reference.split_once(':').unwrap_or((reference, ""));
        let Some((_, kind)) = self.by_name.iter().find(|(name, _)| name == provider) else {
            let known: Vec<_> = self.by_name.iter().map(|(name, _)| name.as_str()).collect();
            return Err(if known.is_empty() {
                "the worker has no config.providers".to_owned()
            } else {
                format!("the worker's config.providers are {}", known.join(", "))
            });
        };
        let path_and_key =
            rest.split_once(':').filter(|(path, key)| !path.is_empty() && !key.is_empty());
        match (kind, path_and_key) {
            (ProviderKind::Environment { allowed }, None) => {
                self.look_up_variable(rest, allowed.as_ref())
            }
            (ProviderKind::Environment { .. }, Some(_)) => {
                Err("a variable's name has no path in front".to_owned())
            }
            (ProviderKind::File { allowed }, Some((path, key))) => {
                look_up_property(Path::new(path), key, allowed)
            }
            (ProviderKind::Directory { allowed }, Some((directory, file))) => {
                read(&Path::new(directory).join(file), allowed)
            }
            (_, None) => Err("it has no path and key".to_owned()),
        }
    }

    fn look_up_variable(&self, name: &str, allowed: Option<&Regex>) -> Result<String, String> {
        if allowed.is_some_and(|pattern| !pattern.is_match(name)) {
            return Err("the worker's allowlist.pattern does not admit it".to_owned());
        }
        (self.environment)(name).ok_or_else(|| "there is no such variable".to_owned())
    }
}

impl fmt::Debug for Providers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Providers").field(&self.by_name).finish()
    }
}

/// Whether a value holds a reference, resolvable or not.
pub(super) fn has_reference(value: &str) -> bool {
    next_reference(value).is_some()
}

/// What stands before the first reference, the reference without its brackets, what follows.
/// Brackets without a colon are plain text, as Kafka Connect takes them.
fn next_reference(text: &str) -> Option<(&str, &str, &str)> {
    let mut from = 0;
    while let Some(found) = text.get(from..)?.find("${") {
        let start = from + found;
        let inner = text.get(start + 2..)?;
        let end = inner.find('}')?;
        let reference = inner.get(..end)?;
        if reference.contains(':') {
            return Some((text.get(..start)?, reference, inner.get(end + 1..)?));
        }
        from = start + 2;
    }
    None
}

fn look_up_property(path: &Path, key: &str, allowed: &[PathBuf]) -> Result<String, String> {
    let text = read(path, allowed)?;
    let entries = properties::parse(&text).map_err(|error| error.to_string())?;
    // The last one counts, as in Java.
    let found = entries.into_iter().rev().find(|(name, _)| name == key);
    found.map(|(_, value)| value).ok_or_else(|| "the file has no such key".to_owned())
}

fn read(path: &Path, allowed: &[PathBuf]) -> Result<String, String> {
    if !allowed.is_empty() {
        let real = path.canonicalize().map_err(|error| error.to_string())?;
        let is_allowed = allowed
            .iter()
            .any(|below| below.canonicalize().is_ok_and(|below| real.starts_with(below)));
        if !is_allowed {
            return Err("the worker's allowed.paths do not admit it".to_owned());
        }
    }
    std::fs::read_to_string(path).map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn providers() -> Providers {
        let environment: Environment =
            Arc::new(|name| (name == "PG_PASSWORD").then(|| "S3cret!1".to_owned()));
        let kinds = vec![
            ("env".to_owned(), ProviderKind::Environment { allowed: None }),
            ("file".to_owned(), ProviderKind::File { allowed: Vec::new() }),
            ("dir".to_owned(), ProviderKind::Directory { allowed: Vec::new() }),
        ];
        Providers::new(kinds, environment)
    }

    #[track_caller]
    fn check(value: &str, expect: Result<&str, &str>) {
        let resolved = providers().resolve(value);
        assert_eq!(resolved.as_deref().map_err(String::as_str), expect);
    }

    #[test]
    fn references_are_replaced_wherever_they_stand() {
        check("plain", Ok("plain"));
        check("${env:PG_PASSWORD}", Ok("S3cret!1"));
        check("a${env:PG_PASSWORD}b${env:PG_PASSWORD}c", Ok("aS3cret!1bS3cret!1c"));
    }

    #[test]
    fn brackets_without_a_colon_are_text() {
        check("outbox.${routedByValue}", Ok("outbox.${routedByValue}"));
        check("${routedByValue}${env:PG_PASSWORD}", Ok("${routedByValue}S3cret!1"));
        check("${", Ok("${"));
        check("${env:PG", Ok("${env:PG"));
    }

    #[test]
    fn what_cannot_be_resolved_is_named() {
        check(
            "${env:NOPE}",
            Err("the reference ${env:NOPE} cannot be resolved: there is no such variable"),
        );
        check(
            "${vault:secret:pw}",
            Err("the reference ${vault:secret:pw} cannot be resolved: \
                 the worker's config.providers are env, file, dir"),
        );
        check(
            "${file:x}",
            Err("the reference ${file:x} cannot be resolved: it has no path and key"),
        );
        assert!(Providers::none().resolve("${env:PG_PASSWORD}").is_err());
    }

    #[test]
    fn files_and_directories_are_read() {
        let folder =
            std::env::temp_dir().join(format!("tidegate-providers-{}", std::process::id()));
        std::fs::create_dir_all(&folder).expect("a folder");
        std::fs::write(folder.join("secrets.properties"), "pw = S3cret!1\n").expect("a file");
        std::fs::write(folder.join("token"), "abc").expect("a file");
        let folder_text = folder.display();
        check(&format!("${{file:{folder_text}/secrets.properties:pw}}"), Ok("S3cret!1"));
        check(&format!("${{dir:{folder_text}:token}}"), Ok("abc"));
        let missing = format!("${{file:{folder_text}/secrets.properties:no}}");
        let answer = providers().resolve(&missing).map(Cow::into_owned);
        assert!(answer.is_err_and(|why| why.ends_with("the file has no such key")));

        let elsewhere = folder.join("allowed");
        std::fs::create_dir_all(&elsewhere).expect("a folder");
        let kinds = vec![("dir".to_owned(), ProviderKind::Directory { allowed: vec![elsewhere] })];
        let strict = Providers::new(kinds, process_environment());
        for trick in [
            format!("${{dir:{folder_text}:token}}"),
            format!("${{dir:{folder_text}/allowed:../token}}"),
        ] {
            let answer = strict.resolve(&trick);
            assert!(answer.is_err_and(|why| why.ends_with("do not admit it")));
        }
        std::fs::remove_dir_all(&folder).expect("removed");
    }
}
