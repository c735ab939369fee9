//! Orders that come as rows of a table (`signal.data.collection`), as Debezium's signals do.
//!
//! A row is read where its insert stands in the stream, and carried out at the end of its
//! transaction; what becomes of it is stored with that end, so a crash neither loses nor repeats it.
//! **Invariants:** a signal that cannot be carried out is told and passed over; the stream ends by
//! one only as by a server that cannot be reached, and finds it again.

use serde_json::Value;

use super::Incremental;
use super::orders::plan;
use crate::change::ChangeKind;
use crate::error::{Code, Fate, Fault};
use crate::sources::postgres::decode::RowChange;
use crate::sources::postgres::wire::Lsn;
use crate::sources::{SnapshotAction, starts_snapshot, stops_snapshot};

/// So many of one transaction are taken.
const MOST: usize = 1000;
/// Data beyond so many bytes is no signal.
const LONGEST: usize = 64 << 10;

/// A row of the signal table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::sources::postgres) struct Signal {
    id: String,
    kind: String,
    data: String,
    /// Why it cannot be read.
    wrong: Option<&'static str>,
}

/// The signals of the transaction that is open.
#[derive(Debug, Default)]
pub(in crate::sources::postgres) struct Signals(Vec<Signal>);

impl Signals {
    /// Takes an inserted row; other changes of the table mean nothing.
    pub(in crate::sources::postgres) fn take(&mut self, change: &RowChange<'_>) {
        if change.kind == ChangeKind::Create && self.0.len() <= MOST {
            let mut signal = Signal::read(change);
            if self.0.len() == MOST {
                signal.wrong = Some("one transaction has too many; no more of it are looked at");
            }
            self.0.push(signal);
        }
    }

    /// Those of a transaction that is over.
    pub(in crate::sources::postgres) fn drain(&mut self) -> Vec<Signal> {
        std::mem::take(&mut self.0)
    }
}

impl Signal {
    /// By the places of the columns, as Debezium reads them: id, type, data.
    fn read(change: &RowChange<'_>) -> Self {
        let cells = change.row.after.unwrap_or_default();
        let text = |place: usize| {
            let raw = cells.get(place).and_then(|cell| change.row.raw(*cell)).unwrap_or_default();
            std::str::from_utf8(raw).unwrap_or_default()
        };
        let wrong = match (cells.len(), text(2).len()) {
            (3, 0..=LONGEST) => None,
            (3, _) => Some("the data is too long"),
            _ => Some("the signal table must have three columns: id, type, data"),
        };
        let data = if wrong.is_none() { text(2).to_owned() } else { String::new() };
        let shown = |place: usize| text(place).chars().take(100).collect();
        Self { id: shown(0), kind: shown(1), data, wrong }
    }

    fn refused(&self, why: impl std::fmt::Display) -> Fault {
        Code::SignalRefused.fault(format!("the signal \"{}\" ({}): {why}", self.id, self.kind))
    }

    /// What is to be done; `None`: nothing.
    fn action(&self) -> Result<Option<SnapshotAction>, Fault> {
        match self.kind.as_str() {
            "stop-snapshot" => stops_snapshot(self.data.trim().as_bytes())
                .map(Some)
                .map_err(|fault| self.refused(fault.message())),
            "pause-snapshot" => Ok(Some(SnapshotAction::Pause)),
            "resume-snapshot" => Ok(Some(SnapshotAction::Resume)),
            // marks that Debezium writes for itself
            "snapshot-window-open" | "snapshot-window-close" => Ok(None),
            _ => Err(self.refused(
                "its type must be execute-snapshot, stop-snapshot, pause-snapshot, \
                 resume-snapshot or log",
            )),
        }
    }

    /// What a `log` signal says, `{}` standing for the position.
    fn message(&self, position: Lsn) -> Result<String, Fault> {
        let data: Value = serde_json::from_str(&self.data).map_err(|error| self.refused(error))?;
        match data.get("message").and_then(Value::as_str) {
            Some(text) => Ok(text.replace("{}", &position.to_string())),
            None => Err(self.refused("'message' is missing")),
        }
    }
}

impl Incremental {
    /// Carries signals out, in their order; answers whether that has to be stored. `position`: the
    /// end of their transaction.
    ///
    /// # Errors
    /// The server cannot be asked what they mean.
    pub(in crate::sources::postgres) async fn obey(
        &mut self,
        signals: Vec<Signal>,
        position: Lsn,
    ) -> Result<bool, Fault> {
        let mut is_changed = false;
        if self.tools.settings.trial.is_some() {
            return Ok(false);
        }
        for signal in signals {
            let metrics = std::sync::Arc::clone(&self.tools.metrics);
            match self.obey_one(&signal, position).await {
                Ok(changes) => {
                    metrics.signals.done.add(1);
                    is_changed |= changes;
                }
                Err(fault) if fault.fate() == Fate::Retry => return Err(fault),
                Err(fault) => {
                    metrics.signals.refused.add(1);
                    tracing::warn!(
                        id = signal.id,
                        kind = signal.kind,
                        %position,
                        error = %fault,
                        "a signal is not carried out"
                    );
                }
            }
        }
        if is_changed {
            self.show_all();
        }
        Ok(is_changed)
    }

    async fn obey_one(&mut self, signal: &Signal, position: Lsn) -> Result<bool, Fault> {
        if let Some(why) = signal.wrong {
            return Err(signal.refused(why));
        }
        let action = match signal.kind.as_str() {
            "log" => {
                let text = signal.message(position)?;
                tracing::info!(id = signal.id, %position, "signal: {text}");
                return Ok(false);
            }
            "execute-snapshot" => {
                let request = starts_snapshot(signal.data.as_bytes())
                    .map_err(|fault| signal.refused(fault.message()))?;
                SnapshotAction::Start(Box::pin(plan(&self.tools.settings, &request)).await?)
            }
            _ => match signal.action()? {
                Some(action) => action,
                None => return Ok(false),
            },
        };
        self.apply(action)?;
        tracing::info!(id = signal.id, kind = signal.kind, %position, "a signal is carried out");
        Ok(true)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::change::{Cell, RowImage};
    use crate::sources::postgres::wire::RelationId;

    fn row(texts: &[Option<&str>], kind: ChangeKind) -> Vec<Signal> {
        let mut bytes = Vec::new();
        let mut cells = Vec::new();
        for text in texts {
            cells.push(text.map_or(Cell::Null, |text| {
                let start = u32::try_from(bytes.len()).unwrap();
                bytes.extend_from_slice(text.as_bytes());
                Cell::Raw { start, len: u32::try_from(text.len()).unwrap() }
            }));
        }
        let row = RowImage { bytes: &bytes, before: None, after: Some(&cells), reread: &[] };
        let (relation, lsn) = (RelationId(7), Lsn(16));
        let mut signals = Signals::default();
        signals.take(&RowChange { relation, index: 0, kind, row, lsn, sequence: 1 });
        signals.drain()
    }

    fn of(kind: &str, data: Option<&str>) -> Signal {
        row(&[Some("a1"), Some(kind), data], ChangeKind::Create).remove(0)
    }

    #[test]
    fn an_inserted_row_is_a_signal_by_the_places_of_its_columns() {
        let signal = of("log", Some(r#"{"message": "at {}"}"#));
        assert_eq!((signal.id.as_str(), signal.wrong), ("a1", None));
        assert_eq!(signal.message(Lsn(16)).unwrap(), "at 0/10");
        assert!(row(&[Some("a"), Some("log"), None], ChangeKind::Delete).is_empty());
        assert!(row(&[Some("a"), Some("log")], ChangeKind::Create)[0].wrong.is_some());
        assert!(of("log", Some(&"x".repeat(LONGEST + 1))).wrong.is_some());
    }

    #[test]
    fn types_are_debeziums_and_others_are_refused() {
        let action = |kind, data| of(kind, data).action();
        assert!(matches!(action("pause-snapshot", None), Ok(Some(SnapshotAction::Pause))));
        assert!(matches!(action("resume-snapshot", None), Ok(Some(SnapshotAction::Resume))));
        assert!(matches!(action("stop-snapshot", None), Ok(Some(SnapshotAction::Stop(None)))));
        assert!(matches!(action("snapshot-window-open", None), Ok(None)));
        for (kind, data) in [("stop-snapshot", "["), ("STOP-SNAPSHOT", "{}"), ("", "{}")] {
            assert_eq!(action(kind, Some(data)).unwrap_err().code(), Code::SignalRefused);
        }
        assert!(of("log", Some("{}")).message(Lsn(1)).is_err());
    }

    proptest::proptest! {
        #[test]
        fn no_row_panics(texts in proptest::collection::vec(proptest::option::of(".{0,20}"), 0..5)) {
            let texts: Vec<_> = texts.iter().map(Option::as_deref).collect();
            for signal in row(&texts, ChangeKind::Create) {
                drop((signal.action(), signal.message(Lsn(1))));
            }
        }
    }
}
