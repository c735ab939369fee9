//! A recorded stream through the whole path, without a server: frames in, staged records out.
//!
//! The same code as for a live stream, for tests and measurements. Without a server to ask, what
//! only the catalogue knows stays unknown, so that every column outside the key is nullable.

use std::sync::Arc;

use super::Settings;
use super::decode::Decoder;
use super::frames::frame_in;
use super::offset::{Offset, Phase};
use super::publishing::Publishing;
use super::status::Progress;
use super::tables::{Origin, Tables};
use super::wire::Lsn;
use crate::error::Fault;
use crate::stage::{Services, Stage};

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
    let tables = Tables::offline(Arc::clone(&settings), stage.metrics())?;
    feed(settings, (stage, tables), reads, handed_over).await
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
    feed(settings, (stage, tables), reads, handed_over).await
}

async fn feed<'f, S: Services>(
    settings: Arc<Settings>,
    (mut stage, mut tables): (Stage<S>, Tables),
    reads: impl IntoIterator<Item = &'f [Vec<u8>]>,
    mut handed_over: impl FnMut(),
) -> Result<(), Fault> {
    let offset = Offset {
        system_id: 0,
        timeline: 1,
        slot: settings.slot_name.clone(),
        nonce: 0,
        phase: Phase::Streaming { end: Lsn::ZERO },
        inside: None,
        settings_fingerprint: 0,
        publication_fingerprint: 0,
    };
    let mut decoder = Decoder::new();
    let progress = Progress::default();
    let mut publishing = Publishing::resume(&mut stage, &mut tables, offset, Lsn::ZERO);
    for frames in reads {
        for frame in frames {
            frame_in(&mut decoder, &mut publishing, &progress, frame).await?;
        }
        publishing.stage.hand_over().await?;
        handed_over();
    }
    Ok(())
}
