//! Looks after the publication while the stream runs.
//!
//! The server follows an altered publication without a word: rows of a table that was dropped from
//! it, or hidden by a filter, simply do not come any more. Asks the catalogue now and then, on a
//! connection of its own. **Invariant:** a publication that hides something of what is captured ends
//! the stream with a code; one that cannot be asked about does not.

use std::sync::Arc;
use std::time::Duration;

use tokio::task::JoinHandle;

use super::Settings;
use super::capture::select;
use super::catalogue::list_relations;
use super::connection::{Connection, Purpose};
use super::driver::combine;
use super::publication::{check_coverage, check_definition, read_publication};
use crate::error::{Code, Fault};

/// How often the publication is looked at.
const INTERVAL: Duration = Duration::from_secs(10);

/// Looks after the publication until it is dropped.
#[derive(Debug)]
pub(super) struct PublicationWatch {
    join: JoinHandle<Fault>,
}

impl PublicationWatch {
    /// Begins with a publication that was found in order.
    pub(super) fn start(settings: Arc<Settings>, fingerprint: u64) -> Self {
        Self { join: tokio::spawn(Look { settings, fingerprint, connection: None }.run()) }
    }

    /// Ends only if the publication hides something.
    pub(super) async fn changed(&mut self) -> Fault {
        match (&mut self.join).await {
            Ok(fault) => fault,
            Err(error) => Code::Internal.fault("the publication's watch ended").caused_by(&error),
        }
    }
}

impl Drop for PublicationWatch {
    fn drop(&mut self) {
        self.join.abort();
    }
}

#[derive(Debug)]
struct Look {
    settings: Arc<Settings>,
    fingerprint: u64,
    connection: Option<Connection>,
}

impl Look {
    async fn run(mut self) -> Fault {
        loop {
            tokio::time::sleep(INTERVAL).await;
            let Some(mut connection) = self.connect().await else { continue };
            match self.look(&mut connection).await {
                Ok(()) => self.connection = Some(connection),
                Err(fault) if fault.code() == Code::PublicationChanged => return fault,
                Err(fault) => {
                    tracing::debug!(error = %fault, "the publication cannot be looked at now");
                }
            }
        }
    }

    async fn connect(&mut self) -> Option<Connection> {
        match self.connection.take() {
            Some(connection) => Some(connection),
            None => Connection::open(&self.settings.connection, Purpose::Control).await.ok(),
        }
    }

    async fn look(&mut self, connection: &mut Connection) -> Result<(), Fault> {
        let settings = &self.settings;
        let name = &settings.publication_name;
        let Some(facts) = read_publication(connection, name).await? else {
            return Err(Code::PublicationChanged
                .fault(format!(
                    "the publication \"{name}\" was dropped while its changes were read"
                ))
                .hint(
                    "What was written since is lost to the stream: drop the slot, delete the \
                     connector's offset and snapshot anew.",
                ));
        };
        let fingerprint = facts.fingerprint();
        if fingerprint == self.fingerprint {
            return Ok(());
        }
        let relations = list_relations(connection).await?;
        let selected = select(&relations, &settings.tables, settings.publish_via_partition_root);
        // tables that are gone from the catalogue are another matter
        let Ok(selection) = selected else { return Ok(()) };
        let mut faults = check_definition(settings, &facts, &selection);
        faults.extend(check_coverage(settings, &facts, &selection));
        combine(&faults).map_err(|fault| Code::PublicationChanged.fault(fault.to_string()))?;
        self.fingerprint = fingerprint;
        Ok(())
    }
}
