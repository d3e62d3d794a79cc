//! Jobs that wait for a place.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use crate::cluster::{MAX_GPUS, Within};

use super::super::dump::{Tally, WaitingGroup, WaitingJob};
use super::super::tres::Tres;
use super::record::{JobRecord, waits};
use super::running::{Running, asked, gpus_a_node};
use super::walls::Allowed;

/// The most tasks of one array that are told apart.
const MOST_TASKS: u64 = 100_000;

/// Reasons of jobs that nothing but nodes keeps from starting.
const FOR_NODES: [&str; 5] = ["", "None", "Resources", "Priority", "ReqNodeNotAvail"];

/// The jobs that wait for a place, those of the highest priority first, then those of the lowest number.
pub(super) fn waiting(jobs: &[JobRecord], running: &Running, tally: &mut Tally) -> Vec<WaitingJob> {
    let mut pending: Vec<&JobRecord> = jobs.iter().filter(|job| waits(&job.states)).collect();
    pending.sort_by_key(|job| (Reverse(job.priority), job.id));
    let mut parts: BTreeMap<u64, Vec<&JobRecord>> = BTreeMap::new();
    for job in &pending {
        if let Some(whole) = job.heterogeneous {
            parts.entry(whole).or_default().push(job);
        }
    }
    let mut waiting = Vec::new();
    for job in pending {
        let wished = match job.heterogeneous {
            None => wish(job, running, tally),
            // All parts stand where the first of them does.
            Some(whole) => match parts.remove(&whole) {
                Some(parts) => whole_wish(whole, parts, running, tally),
                None => continue,
            },
        };
        match wished {
            Ok(wish) => add(job, wish, &mut waiting, tally),
            Err(why) => tally.met(why, &job.heterogeneous.unwrap_or(job.id).to_string()),
        }
    }
    waiting
}

/// What a heterogeneous job wants: a group of instances for each of its parts, which start together.
fn whole_wish(
    whole: u64,
    mut parts: Vec<&JobRecord>,
    running: &Running,
    tally: &mut Tally,
) -> Result<WaitingJob, String> {
    let name = whole.to_string();
    parts.sort_by_key(|part| part.id);
    let (mut groups, mut bound) = (Vec::new(), false);
    let is_elsewhere = |part: &JobRecord| gpus_a_node(part) == Some(0) && running.walls.has_node_without_gpus(part);
    for part in &parts {
        if is_elsewhere(part) {
            tally.met("waiting heterogeneous jobs with parts that need no GPU, taken without these", &name);
            continue;
        }
        let wish = wish(part, running, tally)?;
        bound |= wish.within.is_some();
        groups.extend(wish.groups);
    }
    if groups.is_empty() {
        return Err("waiting jobs that need no GPU, left out".to_owned());
    }
    if bound {
        tally.met("waiting heterogeneous jobs with parts that ask for one switch each, taken without", &name);
    }
    tally.met("waiting heterogeneous jobs: a group for each part, which start together", &name);
    Ok(WaitingJob { name, groups, within: None })
}

/// What a job wants of each node, or why it is left out.
fn wish(job: &JobRecord, running: &Running, tally: &mut Tally) -> Result<WaitingJob, String> {
    let left_out = |why: &str| format!("waiting jobs that {why}, left out");
    if !FOR_NODES.contains(&job.reason.as_str()) {
        return Err(left_out(&format!("wait for something else ({})", job.reason)));
    }
    if !job.required_nodes.is_empty() {
        return Err(left_out("ask for certain nodes"));
    }
    if job.reservation {
        return Err(left_out("wait for a reservation"));
    }
    let asked = asked(job);
    if asked.shares {
        return Err(left_out("ask for shards of GPUs"));
    }
    if asked.kinds.len() > 1 {
        return Err(left_out("ask for GPUs of several types"));
    }
    let kind = asked.kinds.first().map_or("", String::as_str);
    let models = match running.walls.allowed(job, kind) {
        Allowed::These(models) => models,
        // Without nodes nothing is known of partitions; the type alone tells.
        Allowed::Nowhere if running.walls.is_empty() => asked.kinds,
        Allowed::Nowhere => return Err(left_out("no node with GPUs could take: type, partition or features")),
        Allowed::Unreadable => return Err(left_out("ask for features by an expression")),
    };
    let gpus = match gpus_a_node(job) {
        Some(0) if running.walls.has_node_without_gpus(job) => return Err(left_out("need no GPU")),
        _ if job.exclusive => running.common_size(&models).map(u64::from),
        gpus => gpus,
    };
    let gpus = gpus.ok_or_else(|| left_out("ask for GPUs that do not come out even on their nodes"))?;
    let gpus = u8::try_from(gpus).ok().filter(|&gpus| usize::from(gpus) <= MAX_GPUS);
    let gpus = gpus.ok_or_else(|| left_out("ask for more than 16 GPUs a node"))?;
    if !running.all_closed(&job.excluded_nodes) {
        tally.met("waiting jobs that exclude certain nodes, taken as open to all", &job.id.to_string());
    }
    let instances = u32::try_from(job.nodes.max(1)).map_err(|_| left_out("ask for more nodes than there can be"))?;
    let within = match job.switches {
        1 if running.knows_racks() => Some(Within::Rack),
        0 => None,
        asked => {
            let why = if asked == 1 { "one switch, where none is known" } else { "several switches at most" };
            tally.met(format!("waiting jobs that ask for {why}, taken without"), &job.id.to_string());
            None
        }
    };
    let total = Tres::read(&job.asked).unwrap_or_default();
    let each = |total: u64| total.div_ceil(u64::from(instances));
    Ok(WaitingJob {
        name: job.id.to_string(),
        groups: vec![WaitingGroup {
            instances,
            gpus,
            cpu_milli: each(total.cpu_milli),
            memory_mib: each(total.memory_mib),
            models,
        }],
        within,
    })
}

/// Adds a job, or the tasks of an array.
fn add(job: &JobRecord, wish: WaitingJob, waiting: &mut Vec<WaitingJob>, tally: &mut Tally) {
    if job.array_tasks.is_empty() {
        waiting.push(wish);
        return;
    }
    let mut left = MOST_TASKS;
    let list = job.array_tasks.split('%').next().unwrap_or("");
    for part in list.split(',') {
        let Some((first, last, step)) = range(part) else {
            tally.met("arrays whose list of tasks is cut, its rest left out", &wish.name);
            return;
        };
        for task in (first..=last).step_by(step) {
            if left == 0 {
                tally.met("arrays of more than 100,000 tasks, the others left out", &wish.name);
                return;
            }
            left -= 1;
            waiting.push(WaitingJob { name: format!("{}_{task}", wish.name), ..wish.clone() });
        }
    }
}

/// The tasks of `7`, `2-3` or `0-98:2`.
fn range(part: &str) -> Option<(u64, u64, usize)> {
    let (range, step) = part.split_once(':').unwrap_or((part, "1"));
    let (first, last) = range.split_once('-').unwrap_or((range, range));
    let step = step.parse().ok().filter(|&step| step > 0)?;
    Some((first.trim().parse().ok()?, last.trim().parse().ok()?, step))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tasks_of_an_array_are_jobs_of_their_own() {
        let names = |tasks: &str| {
            let job = JobRecord { array_tasks: tasks.to_owned(), ..JobRecord::default() };
            let wish = WaitingJob { name: "9".to_owned(), ..WaitingJob::default() };
            let (mut waiting, mut tally) = (Vec::new(), Tally::new("f"));
            add(&job, wish, &mut waiting, &mut tally);
            (waiting.iter().map(|job| job.name.clone()).collect::<Vec<_>>().join(" "), tally.notes().len())
        };
        for (tasks, expected, notes) in
            [("", "9", 0), ("2-3%2", "9_2 9_3", 0), ("0-8:4,11", "9_0 9_4 9_8 9_11", 0), ("1,3,...", "9_1 9_3", 1)]
        {
            assert_eq!(names(tasks), (expected.to_owned(), notes), "{tasks}");
        }
        let (all, notes) = names("0-99999999999");
        assert_eq!((all.split(' ').count(), notes), (100_000, 1));
    }
}
