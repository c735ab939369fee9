//! A recorded stream through the whole path, without a server: frames in, staged records out.
//!
//! The same code as for a live stream, for tests and measurements. Without a server to ask, what
//! only the catalogue knows stays unknown, so that every column outside the key is nullable.

use std::sync::Arc;

use super::Settings;
use super::decode::Decoder;
use super::frames::frame_in;
use super::messages::Messages;
use super::offset::{Offset, Phase};
use super::publishing::Publishing;
use super::status::Progress;
use super::tables::{Origin, Tables};
use super::wire::Lsn;
use crate::error::{Code, Fault};
use crate::stage::{OffsetRecord, Services, Stage, TableState};

/// Feeds the frames of one connection to a stage; each slice is what one read brought. Complete
/// transactions are handed over after each of them, and `handed_over` is told.
///
/// # Errors
/// A frame is malformed, a change cannot be published, or the queue is closed.
pub async fn replay<'f, S: Services>(
    settings: Arc<Settings>,
    stage: Stage<S>,
    reads: impl IntoIterator<Item = &'f [Vec<u8>]>,
    handed_over: impl FnMut(),
) -> Result<(), Fault> {
    resume(settings, stage, (None, &[]), reads, handed_over).await
}

/// The same for a worker that was there before: goes on behind the offset that it stored, with what
/// it remembered of the tables. Messages are published as the settings say.
///
/// # Errors
/// As [`replay`]; or what was stored cannot be read, or is no position in a stream.
pub async fn resume<'f, S: Services>(
    settings: Arc<Settings>,
    stage: Stage<S>,
    (stored, states): (Option<&OffsetRecord>, &[TableState]),
    reads: impl IntoIterator<Item = &'f [Vec<u8>]>,
    handed_over: impl FnMut(),
) -> Result<(), Fault> {
    let offset = match stored {
        Some(stored) => Offset::decode(&stored.0)?,
        None => beginning(&settings),
    };
    let tables = Tables::offline(Arc::clone(&settings), states, stage.metrics())?;
    feed(settings, (stage, tables), offset, reads, handed_over).await
}

/// The same, with the catalogue of the server that the settings name.
///
/// # Errors
/// As [`replay`]; or the server cannot be asked.
pub async fn replay_of_server<'f, S: Services>(
    settings: Arc<Settings>,
    stage: Stage<S>,
    reads: impl IntoIterator<Item = &'f [Vec<u8>]>,
    handed_over: impl FnMut(),
) -> Result<(), Fault> {
    let origin = Origin { system: String::new(), database: String::new() };
    let tables = Tables::new(Arc::clone(&settings), origin, &[], stage.metrics())?;
    let offset = beginning(&settings);
    feed(settings, (stage, tables), offset, reads, handed_over).await
}

/// Nothing of the stream is in Kafka.
fn beginning(settings: &Settings) -> Offset {
    Offset {
        system_id: 0,
        timeline: 1,
        slot: settings.slot_name.clone(),
        nonce: 0,
        phase: Phase::Streaming { end: Lsn::ZERO },
        inside: None,
        settings_fingerprint: 0,
        publication_fingerprint: 0,
        publication_stamp: 0,
    }
}

async fn feed<'f, S: Services>(
    settings: Arc<Settings>,
    (mut stage, mut tables): (Stage<S>, Tables),
    offset: Offset,
    reads: impl IntoIterator<Item = &'f [Vec<u8>]>,
    mut handed_over: impl FnMut(),
) -> Result<(), Fault> {
    let Phase::Streaming { end } = offset.phase else {
        return Err(Code::Internal.fault("only a streaming offset can be streamed from"));
    };
    let mut decoder = Decoder::new();
    let progress = Progress::default();
    let mut publishing = Publishing::resume(&mut stage, &mut tables, offset, end);
    publishing.messages = Messages::new(settings.messages.clone());
    if end > Lsn::ZERO {
        publishing.fields.commit(end);
    }
    for frames in reads {
        for frame in frames {
            frame_in(&mut decoder, &mut publishing, &progress, frame).await?;
        }
        publishing.stage.hand_over().await?;
        handed_over();
    }
    Ok(())
}
