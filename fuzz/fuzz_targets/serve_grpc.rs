//! No message of the batch API makes the service panic, spoils its books, or changes what it refuses.
#![no_main]

use std::cell::RefCell;

use libfuzzer_sys::fuzz_target;
use prost::Message;
use slotwise::decide::PlaceOptions;
use slotwise::evaluate::Cpu;
use slotwise::serve::grpc::generated::{ApplyEditsRequest, PlaceRequest, PutClusterRequest, ScoreRequest};
use slotwise::serve::grpc::{Pieces, candidates, edits, queue};
use slotwise::serve::{Condition, Live, PlaceCall, ScoreCall, Version};
use slotwise_fuzz::cluster;

thread_local! {
    static LIVE: RefCell<Live> = RefCell::new(Live::new(Box::new(Cpu::new(1).unwrap())));
}

// The first byte says which message the others are.
fuzz_target!(|bytes: &[u8]| {
    let Some((&kind, bytes)) = bytes.split_first() else { return };
    LIVE.with_borrow_mut(|live| {
        let before = live.put(cluster());
        let changed = call(live, kind, bytes);
        let books = live.state().unwrap().cluster().check_books();
        assert_eq!(books, Ok(()));
        assert!(changed || live.version() == before);
    });
});

/// Whether the call may have changed something.
fn call(live: &mut Live, kind: u8, bytes: &[u8]) -> bool {
    let any: Option<Version> = None;
    match kind % 4 {
        0 => {
            let Ok(message) = PutClusterRequest::decode(bytes) else { return false };
            let mut pieces = Pieces::default();
            let Ok(()) = pieces.push(message, 1 << 20) else { return false };
            let Ok(snapshot) = pieces.finish() else { return false };
            live.put(snapshot.cluster);
            true
        }
        1 => {
            let Ok(message) = ApplyEditsRequest::decode(bytes) else { return false };
            let Ok(list) = edits(&message, live.state().unwrap().cluster()) else { return false };
            live.edit(&Condition::default(), &list).is_ok()
        }
        2 => {
            let Ok(message) = ScoreRequest::decode(bytes) else { return false };
            let candidates = Box::new(move |cluster: &mut _| candidates(&message, cluster));
            let scored = live.score(vec![ScoreCall { version: any, candidates }]);
            assert_eq!(scored.len(), 1);
            false
        }
        _ => {
            let Ok(message) = PlaceRequest::decode(bytes) else { return false };
            let options = PlaceOptions { threads: 1, ..PlaceOptions::default() };
            let call = PlaceCall { condition: Condition::default(), options, commit: message.commit };
            let placed = live.place(&call, |cluster| queue(&message, cluster), &mut |_, _, _| Ok(()));
            placed.is_ok() && call.commit
        }
    }
}
