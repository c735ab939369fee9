//! Faults that may heal or may not: they are waited out, but not for ever at the same place.

use crate::error::Fault;
use crate::kafka::OffsetRecord;

/// What the attempts of a task met in a row at one stored offset.
#[derive(Debug, Default)]
pub(super) struct Doubt {
    place: Option<OffsetRecord>,
    met: u32,
}

impl Doubt {
    /// An attempt goes on from this offset. Another one than the attempt before: it got on.
    pub(super) fn begin(&mut self, place: Option<&OffsetRecord>) {
        if self.place.as_ref() != place {
            *self = Self { place: place.cloned(), met: 0 };
        }
    }

    /// Counts the fault that ended the attempt, and answers whether it was met too often.
    pub(super) fn is_over(&mut self, fault: &Fault) -> bool {
        let Some(tries) = fault.code().tries() else { return false };
        self.met += 1;
        self.met >= tries
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::error::Code;

    fn offset(text: &str) -> OffsetRecord {
        OffsetRecord(Arc::from(text.as_bytes()))
    }

    #[test]
    fn a_fault_that_comes_again_at_one_offset_is_waited_out_a_few_times() {
        let (broken, stopped) = (Code::StreamBroken.fault("x"), Code::StreamStopped.fault("x"));
        let tries = Code::StreamBroken.tries().expect("bounded");
        let mut doubt = Doubt::default();
        let mut met = |place: &str, fault: &Fault| {
            doubt.begin(Some(&offset(place)));
            doubt.is_over(fault)
        };
        assert!((1..tries).all(|_| !met("a", &broken)));
        assert!(!met("b", &broken), "it got on");
        assert!((2..tries).all(|_| !met("b", &broken) && !met("b", &stopped)));
        assert!(met("b", &broken));
        assert!((0..99).all(|_| !met("b", &stopped)), "what may always heal");
    }
}
