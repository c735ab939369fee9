//! The captured tables as they are now, for validation: what would be published if it began now.
//!
//! **Invariant:** it leaves nothing behind on the server.

use super::Settings;
use super::capture::select;
use super::catalogue::{fetch_tables, fetch_types, list_relations};
use super::connection::{Connection, Purpose};
use super::driver::combine;
use super::publication::read_publication;
use super::table_version::build;
use super::values::TypeCatalogue;
use crate::change::TableVersion;
use crate::error::Fault;

/// The table versions that a start would begin with.
///
/// # Errors
/// The server cannot be asked, or nothing is captured.
pub async fn versions(settings: &Settings) -> Result<Vec<TableVersion>, Fault> {
    let mut control = Connection::open(&settings.connection, Purpose::Control).await?;
    let relations = list_relations(&mut control).await?;
    let via_root = settings.publish_via_partition_root;
    let selection = match select(&relations, &settings.tables, via_root) {
        Ok(selection) => selection,
        Err(faults) => return combine(&faults).map(|()| Vec::new()),
    };
    let publication = read_publication(&mut control, &settings.publication_name).await?;
    let generated = publication.is_some_and(|facts| facts.generated);
    let oids: Vec<u32> = selection.captured.iter().map(|entry| entry.oid).collect();
    let tables = fetch_tables(&mut control, &oids).await?;
    let descriptors: Vec<_> = tables.iter().map(|facts| facts.descriptor(generated)).collect();
    let type_oids: Vec<u32> = descriptors
        .iter()
        .flat_map(|descriptor| descriptor.columns.iter().map(|column| column.type_oid))
        .collect();
    let mut types = TypeCatalogue::new();
    fetch_types(&mut control, &mut types, &type_oids).await?;
    control.close().await;
    let rules = &settings.key_rules;
    descriptors
        .iter()
        .zip(&tables)
        .map(|(descriptor, facts)| {
            let version = build(descriptor, Some(facts), &types, &|_| None, 1, rules).version;
            rules.check(&version, Some(facts)).map(|()| version)
        })
        .collect()
}
