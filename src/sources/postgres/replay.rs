//! A recorded stream through the whole path, without a server: frames in, staged records out.
//!
//! The same code as for a live stream, for tests and measurements. Opens no socket; what only the
//! catalogue knows stays unknown, so that every column outside the key is nullable.

use std::sync::Arc;

use super::Settings;
use super::decode::Decoder;
use super::frames::frame_in;
use super::offset::{Offset, Phase};
use super::publishing::Publishing;
use super::status::Progress;
use super::tables::Tables;
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
    mut stage: Stage<S>,
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
    let mut tables = Tables::offline(settings, stage.metrics())?;
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
