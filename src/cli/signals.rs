//! Ctrl-C and its like: the program ends as it would by default, but leaves no unfinished file.

use signal_hook::consts::TERM_SIGNALS;
use signal_hook::iterator::Signals;
use signal_hook::low_level::emulate_default_handler;

use crate::formats::remove_unfinished;

/// Watches for signals from now on, on a thread of its own, so that nothing waits for long work to notice. Without such
/// a thread signals do what they do by default.
pub(super) fn watch() {
    let Ok(mut signals) = Signals::new(TERM_SIGNALS) else { return };
    let watch = move || {
        if let Some(signal) = signals.forever().next() {
            let _held = remove_unfinished();
            // It ends the process, with the status that says by which signal.
            let _ = emulate_default_handler(signal);
        }
    };
    let _ = std::thread::Builder::new().name("signals".to_owned()).spawn(watch);
}
