//! Event triggers that put DDL into the stream: their SQL, their installation, what they write.
//!
//! The server's log has no DDL. With `ddl.capture=event_trigger` a note of each altered table is in
//! it, as a transactional message of [`PREFIX`]; `install` puts the triggers there, `note` reads
//! what they write, `changes` says what it means. Knows no stage and no record format.
//! **Invariants:** nothing is installed but by the command that says so; a note that is not signed
//! by the installed key has no effect at all.

mod changes;
mod install;
mod note;

pub(super) use changes::{Described, altered, name_replaced, rewritten};
pub use install::{CaptureStatus, Installed, install, note, script, uninstall, verify};
pub(super) use install::{read_key, require};
pub use note::read_arbitrary;
pub(super) use note::{DescribedTable, Event, Key, Note};

/// The prefix of notes. Messages of this prefix are never published.
pub const PREFIX: &str = "tidegate.ddl";

/// What a connector is told of definitions that change.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DdlSettings {
    /// `ddl.capture`.
    pub capture: DdlCaptureMode,
    /// `schema.rewrite.action`.
    pub rewrites: RewriteAction,
}

/// `ddl.capture`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum DdlCaptureMode {
    /// Only what the stream describes.
    #[default]
    Off,
    /// Notes of event triggers.
    EventTrigger,
}

/// `schema.rewrite.action`: tables whose rows a change of the definition wrote anew.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RewriteAction {
    /// It is told.
    #[default]
    Warn,
    /// The task stops there, until it is acknowledged.
    Refuse,
    /// The table is read again beside the stream.
    Resnapshot,
}

impl DdlSettings {
    /// Whether notes are taken over.
    pub fn takes_notes(&self) -> bool {
        self.capture == DdlCaptureMode::EventTrigger
    }

    /// A fingerprint of settings, made to depend on these: with notes a transaction has other
    /// numbers.
    pub(super) const fn mix(&self, fingerprint: u64) -> u64 {
        match self.capture {
            DdlCaptureMode::Off => fingerprint,
            DdlCaptureMode::EventTrigger => fingerprint.rotate_left(1) ^ 0x64_646c,
        }
    }
}

/// The first version whose stream has messages.
const SINCE: u32 = 14;
