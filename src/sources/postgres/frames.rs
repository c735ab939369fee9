//! One frame on its way: decoded, its question answered, taken over by the stage.
//!
//! Joins the sans-IO parts for whoever has frames: the driver from a socket, a replay from memory.
//! Opens nothing itself and knows no record format. **Invariant:** a description is answered before
//! the next frame is decoded.

use super::ddl::{self, Note};
use super::decode::{Decoder, Output};
use super::publishing::Publishing;
use super::relations::RelationState;
use super::status::Progress;
use super::values::WireType;
use super::wire::RelationId;
use crate::error::Fault;
use crate::stage::Services;

/// One frame, from bytes to the stage.
///
/// # Errors
/// The frame is malformed, its change cannot be published, or the publisher has ended.
pub(super) async fn frame_in<S: Services>(
    decoder: &mut Decoder,
    publishing: &mut Publishing<'_, S>,
    progress: &Progress,
    frame: &[u8],
) -> Result<(), Fault> {
    let (descriptor, sequence) = match decoder.frame(frame)? {
        Output::Relation { descriptor, sequence } => (descriptor, sequence),
        Output::RelationRepeated { relation, sequence } => {
            publishing.described(relation);
            return recheck(decoder, publishing, relation, sequence).await;
        }
        Output::Message(message) if message.transactional && message.prefix == ddl::PREFIX => {
            let sequence = message.sequence;
            return match publishing.read_note(&message) {
                Some(note) => take_note(decoder, publishing, note, sequence)
                    .await
                    .map_err(|fault| fault.at_position(decoder.position())),
                None => Ok(()),
            };
        }
        output => {
            if let Output::Keepalive(keepalive) = &output {
                progress.set_received(keepalive.wal_end);
                if keepalive.reply_requested {
                    progress.ask_for_reply();
                }
            }
            if let Output::Commit(commit) = &output {
                progress.set_received(commit.end_lsn);
            }
            let outcome = publishing.take(output).await;
            return outcome.map_err(|fault| fault.at_position(decoder.position()));
        }
    };
    publishing.described(descriptor.oid);
    let place = publishing.place(sequence);
    let wire_types =
        |oid| decoder.type_name(oid).map(|(namespace, name)| WireType { namespace, name });
    match publishing.tables.describe(&descriptor, place, &wire_types).await? {
        Some(table) => decoder.install(descriptor.oid, table),
        None => {
            if publishing.is_new(sequence) {
                let Publishing { tables, stage, .. } = &mut *publishing;
                tables.depart(&descriptor, place, &wire_types, stage).await?;
                publishing.take_upheavals()?;
            }
            decoder.exclude(descriptor.oid)
        }
    }
}

/// A table's definition changed here. Where the stream has described it so already, its rows are
/// written by the new version from here on; otherwise it describes it anew before the next row.
async fn take_note<S: Services>(
    decoder: &mut Decoder,
    publishing: &mut Publishing<'_, S>,
    note: Note,
    sequence: u64,
) -> Result<(), Fault> {
    let place = publishing.place(sequence);
    let wire_types =
        |oid| decoder.type_name(oid).map(|(namespace, name)| WireType { namespace, name });
    let Publishing { tables, stage, .. } = &mut *publishing;
    for noted in tables.take_note(note, place, &wire_types, stage).await? {
        let oid = noted.descriptor.oid;
        let is_described = match decoder.relation(oid) {
            Some(RelationState::Ready { descriptor, .. }) => **descriptor == noted.descriptor,
            _ => false,
        };
        if is_described {
            decoder.install(oid, noted.table)?;
        }
    }
    publishing.take_upheavals()
}

/// A description was repeated: the key may be another one.
async fn recheck<S: Services>(
    decoder: &mut Decoder,
    publishing: &mut Publishing<'_, S>,
    relation: RelationId,
    sequence: u64,
) -> Result<(), Fault> {
    let place = publishing.place(sequence);
    let wire_types =
        |oid| decoder.type_name(oid).map(|(namespace, name)| WireType { namespace, name });
    match publishing.tables.recheck_key(relation, place, &wire_types).await? {
        Some(table) => decoder.install(relation, table),
        None => Ok(()),
    }
}
