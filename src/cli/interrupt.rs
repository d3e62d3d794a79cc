//! What happens to files in the making when the user, or whoever runs the program, ends it.

/// Makes a hang-up, an interrupt or a request to end (a closed terminal, Ctrl-C, `kill`, a limit of time) remove the files that are not
/// whole before it takes effect. The process then ends by the same signal, as if nobody had listened: a shell sees 130 or
/// 143, and a script that runs the program ends too. To be called before an output file is made.
#[cfg(unix)]
pub(super) fn remove_unfinished_files() {
    static ONCE: std::sync::Once = std::sync::Once::new();
    ONCE.call_once(|| {
        let (ready, is_ready) = std::sync::mpsc::channel();
        let thread = std::thread::Builder::new().name("signals".to_owned());
        // Without a thread the signals work as ever, and at worst a hidden file is left.
        if thread.spawn(move || listen(ready)).is_ok() {
            // An error says that the thread has ended without listening.
            let _ = is_ready.recv();
        }
    });
}

#[cfg(not(unix))]
pub(super) fn remove_unfinished_files() {}

#[cfg(unix)]
fn listen(ready: std::sync::mpsc::Sender<()>) {
    use signal_hook::consts::{SIGALRM, SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGXCPU, SIGXFSZ};
    let ignored = ignored();
    if ignored >> (SIGXFSZ - 1) & 1 == 0 {
        // Once somebody listens, a file beyond the limit of its size is an error of the write like any other.
        let _ = signal_hook::flag::register(SIGXFSZ, std::sync::Arc::default());
    }
    let wanted = [SIGALRM, SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGXCPU]
        .into_iter()
        .filter(|signal| ignored >> (signal - 1) & 1 == 0);
    let Ok(mut signals) = signal_hook::iterator::Signals::new(wanted) else { return };
    let _ = ready.send(());
    for signal in &mut signals {
        crate::formats::discard_unfinished(|| {
            let _ = signal_hook::low_level::emulate_default_handler(signal);
        });
    }
}

/// The signals that whoever started the program wanted it to ignore (`nohup`), as bits from signal 1 on; to listen to one
/// would end that. None where the system does not tell.
#[cfg(unix)]
fn ignored() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    line.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0)
}
