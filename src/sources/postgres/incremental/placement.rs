//! Where in the stream a chunk belongs: behind every transaction that its snapshot sees, and before
//! the first that it does not.
//!
//! Told of each transaction of the stream by its id and commit position, and of each snapshot by
//! what it sees and the *fence*: the end of the log, read after the snapshot was taken. A
//! transaction that the snapshot sees has its commit record before the fence. Opens nothing.
//!
//! The log's order and the order of visibility differ: the server writes a commit record, the
//! stream shows it, and only then (much later, if a standby is waited for) snapshots see it. So
//! - a transaction that the stream has shown already and that the snapshot does not see makes the
//!   snapshot too old: it is taken again ([`Doubt::Shown`]);
//! - one that is not seen and commits before the fence may stand between two that are seen: taken
//!   again ([`Step::TakeAgain`]);
//! - what was shown before this began to listen is not known. A transaction that was under way in
//!   the first snapshot may be one of those, until it shows up in the stream, has ended, or its
//!   session is seen doing something else than committing ([`Doubt::Unknown`]).
//!
//! Only ids of whole transactions are looked at: a subtransaction becomes visible with its parent,
//! and the stream names none of them.
//! **Invariant:** where a chunk is placed, everything before is seen by its snapshot and nothing
//! behind it is.

use crate::sources::postgres::snapshot::Visibility;
use crate::sources::postgres::wire::{Lsn, Xid};

/// What follows from something that the stream showed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// The place is not reached.
    GoOn,
    /// The chunk belongs here, before what was shown now.
    Here,
    /// The snapshot cannot be placed.
    TakeAgain,
}

/// Why a snapshot cannot be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Doubt {
    /// The stream showed a transaction that the snapshot does not see. It will soon be seen.
    Shown(u64),
    /// These were under way when this began; the stream may have shown them before.
    Unknown(Vec<u64>),
}

/// What a snapshot sees, and where the log ended after it was taken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Window {
    /// What it sees.
    pub(super) seen: Visibility,
    /// Every transaction that it sees committed before this position.
    pub(super) fence: Lsn,
}

/// See the module.
#[derive(Debug, Default)]
pub(super) struct Placement {
    /// Shown since this began, as far as it is not known that every later snapshot sees them.
    shown: Vec<u32>,
    /// Under way when this began, and possibly shown before; `None`: no snapshot was taken yet.
    unknown: Option<Vec<u64>>,
    window: Option<Window>,
}

impl Placement {
    /// Takes in a snapshot that was taken while the stream stood still at `position`.
    ///
    /// # Errors
    /// It is of no use.
    pub(super) fn open(&mut self, window: Window, position: Lsn) -> Result<Step, Doubt> {
        let Window { seen, fence } = &window;
        self.window = None;
        self.shown.retain(|xid| !seen.sees(*xid));
        let shown = &self.shown;
        let unknown = self.unknown.get_or_insert_with(|| seen.in_progress.clone());
        unknown.retain(|id| {
            seen.in_progress.contains(id) && !shown.iter().any(|xid| seen.widen(*xid) == *id)
        });
        if let Some(xid) = self.shown.first() {
            return Err(Doubt::Shown(seen.widen(*xid)));
        }
        if !unknown.is_empty() {
            return Err(Doubt::Unknown(unknown.clone()));
        }
        let step = if position >= *fence { Step::Here } else { Step::GoOn };
        self.window = Some(window);
        Ok(step)
    }

    /// These were seen to be doing something else than committing after this began: the stream
    /// has not shown them.
    pub(super) fn clear(&mut self, ids: &[u64]) {
        if let Some(unknown) = &mut self.unknown {
            unknown.retain(|id| !ids.contains(id));
        }
    }

    /// A transaction begins in the stream. It is shown now, whatever the answer is.
    pub(super) fn begin(&mut self, xid: Xid, commit: Lsn) -> Step {
        let Some(Window { seen, fence }) = &self.window else {
            self.shown.push(xid.0);
            return Step::GoOn;
        };
        if let Some(unknown) = &mut self.unknown {
            let id = seen.widen(xid.0);
            unknown.retain(|one| *one != id);
        }
        let step = match (seen.sees(xid.0), commit < *fence) {
            // a later snapshot sees whatever an earlier one saw
            (true, true) => return Step::GoOn,
            (false, false) => Step::Here,
            (false, true) | (true, false) => Step::TakeAgain,
        };
        self.shown.push(xid.0);
        self.window = None;
        step
    }

    /// Nothing that commits before this position is to come.
    pub(super) fn reached(&mut self, position: Lsn) -> Step {
        match &self.window {
            Some(window) if position >= window.fence => {
                self.window = None;
                Step::Here
            }
            _ => Step::GoOn,
        }
    }

    /// Gives the open snapshot up.
    pub(super) fn give_up(&mut self) {
        self.window = None;
    }
}

#[cfg(test)]
mod tests;
