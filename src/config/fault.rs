//! What is wrong with a configuration: one key, one sentence, one code.
//!
//! **Invariant:** nothing in here shows a value that is secret, nor one that a reference was
//! replaced by; what is shown is what was submitted.

use std::fmt;

use crate::error::{Code, Fault};

/// One fault of one key. A configuration is answered with all of them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConfigFault {
    /// The key.
    pub key: String,
    /// The value as submitted; `None` if there was none or it must not be shown.
    pub value: Option<String>,
    /// What is wrong, without key and value; lower case, no final stop.
    pub message: String,
    /// The code.
    pub code: Code,
}

impl ConfigFault {
    /// A fault that shows no value.
    pub fn new(code: Code, key: impl Into<String>, message: impl Into<String>) -> Self {
        Self { key: key.into(), value: None, message: message.into(), code }
    }

    /// The fault as the other layers know it.
    pub fn to_fault(&self) -> Fault {
        let text = match &self.value {
            Some(value) => format!("{} '{value}': {}", self.key, self.message),
            None => format!("{}: {}", self.key, self.message),
        };
        self.code.fault(text)
    }

    /// The message with the value in front, as a form shows it beside the key.
    pub fn sentence(&self) -> String {
        match &self.value {
            Some(value) => format!("{}: '{value}': {}", self.code, self.message),
            None => format!("{}: {}", self.code, self.message),
        }
    }
}

impl fmt::Display for ConfigFault {
    /// One line: code, key, value, what is wrong.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.value {
            Some(value) => {
                write!(f, "{}: {} '{value}': {}", self.code, self.key, self.message)
            }
            None => write!(f, "{}: {}: {}", self.code, self.key, self.message),
        }
    }
}

impl std::error::Error for ConfigFault {}

/// All faults as one, for places that can carry only one: the first one's code, all messages.
pub fn summarize(faults: &[ConfigFault]) -> Fault {
    match faults {
        [] => Code::ConfigInvalid.fault("the configuration is refused"),
        [only] => only.to_fault(),
        [first, ..] => first.code.fault_of_many(faults),
    }
}
