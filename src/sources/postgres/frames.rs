//! One frame on its way: decoded, its question answered, taken over by the stage.
//!
//! Joins the sans-IO parts for whoever has frames: the driver from a socket, a replay from memory.
//! Opens nothing itself and knows no record format. **Invariant:** a description is answered before
//! the next frame is decoded.

use super::decode::{Decoder, Output};
use super::publishing::Publishing;
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
            return recheck(decoder, publishing, relation, sequence).await;
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
    let place = publishing.place(sequence);
    let wire_types =
        |oid| decoder.type_name(oid).map(|(namespace, name)| WireType { namespace, name });
    match publishing.tables.describe(&descriptor, place, &wire_types).await? {
        Some(table) => decoder.install(descriptor.oid, table),
        None => decoder.exclude(descriptor.oid),
    }
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
