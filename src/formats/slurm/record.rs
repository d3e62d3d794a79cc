//! A node and a job as Slurm's programs list them, whichever program and form it was.

/// A node.
#[derive(Clone, Debug, Default)]
pub(super) struct NodeRecord {
    pub(super) name: String,
    /// The base state and its flags, in capitals.
    pub(super) states: Vec<String>,
    pub(super) gres: String,
    /// Absent where the dump was made without details.
    pub(super) gres_used: Option<String>,
    pub(super) cpus: u64,
    pub(super) cpus_used: u64,
    pub(super) memory_mib: u64,
    pub(super) memory_used: u64,
    pub(super) partitions: Vec<String>,
    pub(super) features: Vec<String>,
    /// Where it is, in the words of the topology plugin.
    pub(super) topology: String,
    /// Somebody holds it alone.
    pub(super) owned: bool,
}

/// A job.
#[derive(Clone, Debug, Default)]
pub(super) struct JobRecord {
    pub(super) id: u64,
    /// What its owner calls it.
    pub(super) name: String,
    /// The base state and its flags, in capitals.
    pub(super) states: Vec<String>,
    /// Why it is pending, in one word.
    pub(super) reason: String,
    pub(super) partitions: Vec<String>,
    pub(super) priority: u64,
    /// The nodes that it has, or the least that it asks for.
    pub(super) nodes: u64,
    pub(super) tasks: u64,
    /// What it asks for and what it was given, such as `cpu=2,mem=2G,node=2`.
    pub(super) asked: String,
    pub(super) given: String,
    pub(super) per_node: String,
    pub(super) per_task: String,
    pub(super) per_job: String,
    pub(super) per_socket: String,
    pub(super) required_nodes: String,
    pub(super) excluded_nodes: String,
    pub(super) features: String,
    pub(super) switches: u64,
    pub(super) exclusive: bool,
    pub(super) reservation: bool,
    pub(super) requeue: bool,
    pub(super) batch: bool,
    /// The number of the heterogeneous job that it is a part of, which is that of its first part.
    pub(super) heterogeneous: Option<u64>,
    /// The tasks of an array that this record stands for, such as `2-3%2`; empty for an ordinary job.
    pub(super) array_tasks: String,
    /// Seconds until its time limit.
    pub(super) remaining_s: Option<u64>,
    /// Until when it may run, in seconds since 1970, where that is known instead.
    pub(super) end_s: Option<u64>,
    /// Whether the dump says what it holds on each node.
    pub(super) detailed: bool,
    pub(super) holdings: Vec<Holding>,
}

/// What a job holds on each host of a list.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Holding {
    pub(super) hosts: String,
    pub(super) gres: String,
    /// `None` where the dump does not say: the job's total, divided.
    pub(super) cpus: Option<u64>,
    pub(super) memory_mib: Option<u64>,
}

/// States in which a job holds what it was given.
pub(super) fn holds(states: &[String]) -> bool {
    // A suspended job keeps its GPUs; one that completes has them until its epilog has run.
    states.iter().any(|state| ["RUNNING", "SUSPENDED", "COMPLETING"].contains(&state.as_str()))
}

/// States in which a job waits.
pub(super) fn waits(states: &[String]) -> bool {
    states.iter().any(|state| state == "PENDING") && !holds(states)
}

/// States in which Slurm starts jobs on a node.
pub(super) fn usable(states: &[String]) -> bool {
    const BASES: [&str; 3] = ["IDLE", "MIXED", "ALLOCATED"];
    const HARMLESS: [&str; 5] = ["PLANNED", "COMPLETING", "CLOUD", "DYNAMIC_NORM", "DYNAMIC_FUTURE"];
    states.iter().any(|state| BASES.contains(&state.as_str()))
        && states.iter().all(|state| BASES.contains(&state.as_str()) || HARMLESS.contains(&state.as_str()))
}

/// The words of a state such as `MIXED+DRAIN`, `DOWN*` or `idle~`, in capitals.
pub(super) fn state_words(text: &str) -> Vec<String> {
    let mut words = Vec::new();
    for word in text.split(['+', ',', ' ']).filter(|word| !word.is_empty()) {
        let plain = word.trim_end_matches(|c: char| !c.is_ascii_alphanumeric() && c != '_');
        words.push(plain.to_ascii_uppercase());
        // What sinfo and squeue put behind the word.
        words.extend(word[plain.len()..].chars().map(|mark| match mark {
            '*' => "NOT_RESPONDING".to_owned(),
            '-' => "PLANNED".to_owned(),
            '$' => "MAINTENANCE".to_owned(),
            '@' => "REBOOT_REQUESTED".to_owned(),
            '^' => "REBOOT_ISSUED".to_owned(),
            '~' | '!' | '%' => "POWERED_DOWN".to_owned(),
            '#' => "POWERING_UP".to_owned(),
            other => format!("MARKED {other}"),
        }));
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn states_say_whether_a_node_is_used_for_new_jobs() {
        for (state, good) in [
            ("IDLE", true),
            ("MIXED+PLANNED", true),
            ("ALLOCATED+COMPLETING", true),
            ("mixed-", true),
            ("IDLE+DRAIN", false),
            ("MIXED+DRAIN", false),
            ("DOWN*", false),
            ("IDLE+NOT_RESPONDING", false),
            ("idle~", false),
            ("IDLE+RESERVED", false),
            ("IDLE+MAINTENANCE", false),
            ("IDLE+CLOUD+POWERED_DOWN", false),
            ("IDLE+INVALID_REG", false),
            ("UNKNOWN", false),
            ("", false),
        ] {
            assert_eq!(usable(&state_words(state)), good, "{state}");
        }
    }

    #[test]
    fn states_say_what_a_job_does() {
        for (state, holding, waiting) in [
            ("RUNNING", true, false),
            ("COMPLETED,COMPLETING", true, false),
            ("SUSPENDED", true, false),
            ("CANCELLED", false, false),
            ("PENDING", false, true),
            ("PENDING+REQUEUED", false, true),
        ] {
            let words = state_words(state);
            assert_eq!((holds(&words), waits(&words)), (holding, waiting), "{state}");
        }
    }
}
