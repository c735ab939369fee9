//! Levels of the log by logger, changeable at run time.
//!
//! Loggers are named as their modules are, with dots as Kafka Connect's clients expect
//! (`tidegate.kafka`), and one that has no level of its own has that of the longest name above it.
//! Knows no HTTP. **Invariant:** what is shown is what the log does.

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The logger above all others.
const ROOT: &str = "root";

/// How much is logged. The words are those of Kafka Connect's loggers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Level {
    /// Nothing.
    Off,
    /// What needs a person.
    Error,
    /// What may need one.
    Warn,
    /// What happens.
    Info,
    /// Why.
    Debug,
    /// Everything.
    Trace,
}

impl Level {
    /// Connect's word.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Off => "OFF",
            Self::Error => "ERROR",
            Self::Warn => "WARN",
            Self::Info => "INFO",
            Self::Debug => "DEBUG",
            Self::Trace => "TRACE",
        }
    }
}

/// The word is no level.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("no such level")]
pub struct UnknownLevel;

impl FromStr for Level {
    type Err = UnknownLevel;

    /// Any case; log4j's `FATAL` and `ALL` mean the nearest that there is.
    fn from_str(word: &str) -> Result<Self, UnknownLevel> {
        Ok(match word.to_ascii_uppercase().as_str() {
            "OFF" => Self::Off,
            "FATAL" | "ERROR" => Self::Error,
            "WARN" => Self::Warn,
            "INFO" => Self::Info,
            "DEBUG" => Self::Debug,
            "TRACE" | "ALL" => Self::Trace,
            _ => return Err(UnknownLevel),
        })
    }
}

/// A logger's level.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LoggerLevel {
    /// The level.
    pub level: Level,
    /// When it was last changed, milliseconds since the epoch; `None`: not since the start.
    pub last_modified: Option<i64>,
}

/// Carries directives (`info,tidegate::kafka=debug`) out.
pub type Apply = Box<dyn Fn(&str) + Send + Sync>;

/// All loggers that have a level of their own.
pub struct Loggers {
    levels: Mutex<BTreeMap<String, LoggerLevel>>,
    apply: Apply,
}

impl fmt::Debug for Loggers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Loggers").field("levels", &self.levels).finish_non_exhaustive()
    }
}

impl Loggers {
    /// Begins with one level for everything, which is in force already.
    pub fn new(root: Level, apply: Apply) -> Self {
        let level = LoggerLevel { level: root, last_modified: None };
        Self { levels: Mutex::new(BTreeMap::from([(ROOT.to_owned(), level)])), apply }
    }

    /// Those with a level of their own, by name.
    pub fn all(&self) -> BTreeMap<String, LoggerLevel> {
        self.locked().clone()
    }

    /// The level of one; `None`: there is no logger of this name.
    pub fn get(&self, name: &str) -> Option<LoggerLevel> {
        let name = dotted(name);
        let levels = self.locked();
        if let Some(level) = levels.get(&name) {
            return Some(*level);
        }
        if !is_ours(&name) {
            return None;
        }
        let above = std::iter::successors(name.rsplit_once('.').map(|(above, _)| above), |name| {
            name.rsplit_once('.').map(|(above, _)| above)
        });
        above.filter_map(|name| levels.get(name)).chain(levels.get(ROOT)).next().copied()
    }

    /// Changes the level of a logger and of those below it that have one of their own. The names of
    /// all that changed, sorted.
    pub fn set(&self, name: &str, level: Level, now_millis: i64) -> Vec<String> {
        let name = dotted(name);
        let mut levels = self.locked();
        let new = LoggerLevel { level, last_modified: Some(now_millis) };
        levels.entry(name.clone()).or_insert(new);
        let below = format!("{name}.");
        let mut changed = Vec::new();
        for (known, own) in levels.iter_mut() {
            if *known == name || known.starts_with(&below) {
                *own = new;
                changed.push(known.clone());
            }
        }
        // under the lock, so that the last change wins here and there
        (self.apply)(&directives(&levels));
        changed
    }

    /// The map is left consistent by every statement, so a poisoned lock is still good.
    fn locked(&self) -> MutexGuard<'_, BTreeMap<String, LoggerLevel>> {
        self.levels.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Names are taken in either spelling; `ROOT` is one of them.
fn dotted(name: &str) -> String {
    if name.eq_ignore_ascii_case(ROOT) {
        return ROOT.to_owned();
    }
    name.replace("::", ".")
}

fn is_ours(name: &str) -> bool {
    name == "tidegate" || name.starts_with("tidegate.")
}

fn directives(levels: &BTreeMap<String, LoggerLevel>) -> String {
    let directive = |(name, own): (&String, &LoggerLevel)| {
        let level = own.level.as_str().to_ascii_lowercase();
        // what is no module's path is nobody's target
        let is_path = name
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'.' | b'-'));
        match name.as_str() {
            ROOT => Some(level),
            _ if is_path => Some(format!("{}={level}", name.replace('.', "::"))),
            _ => None,
        }
    };
    levels.iter().filter_map(directive).collect::<Vec<_>>().join(",")
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    fn loggers() -> (Loggers, Arc<Mutex<String>>) {
        let applied = Arc::new(Mutex::new(String::new()));
        let shared = Arc::clone(&applied);
        let apply = Box::new(move |directives: &str| {
            directives.clone_into(&mut shared.lock().unwrap());
        });
        (Loggers::new(Level::Info, apply), applied)
    }

    #[test]
    fn a_level_holds_for_a_logger_and_all_below_it() {
        let (loggers, applied) = loggers();
        assert_eq!(
            loggers.set("tidegate::kafka.publisher", Level::Trace, 1),
            ["tidegate.kafka.publisher"]
        );
        assert_eq!(
            loggers.set("tidegate.kafka", Level::Debug, 2),
            ["tidegate.kafka", "tidegate.kafka.publisher"]
        );
        assert_eq!(
            *applied.lock().unwrap(),
            "info,tidegate::kafka=debug,tidegate::kafka::publisher=debug"
        );
        let changed = LoggerLevel { level: Level::Debug, last_modified: Some(2) };
        assert_eq!(loggers.get("tidegate.kafka.topics"), Some(changed));
        let untouched = LoggerLevel { level: Level::Info, last_modified: None };
        assert_eq!(loggers.get("tidegate.rest"), Some(untouched));
        assert_eq!(loggers.get("org.apache"), None);
        assert_eq!(loggers.set("ROOT", Level::Warn, 3), ["root"]);
        assert!(applied.lock().unwrap().starts_with("warn,tidegate::kafka=debug"));
    }

    #[test]
    fn a_name_that_is_no_path_is_kept_and_reaches_no_directive() {
        let (loggers, applied) = loggers();
        loggers.set("a=trace,b[", Level::Trace, 1);
        assert_eq!(loggers.get("a=trace,b[").map(|own| own.level), Some(Level::Trace));
        assert_eq!(*applied.lock().unwrap(), "info");
    }

    #[test]
    fn levels_are_named_in_any_case() {
        for (word, expect) in
            [("debug", Ok(Level::Debug)), ("Fatal", Ok(Level::Error)), ("x", Err(UnknownLevel))]
        {
            assert_eq!(word.parse(), expect, "{word}");
        }
    }
}
