//! Why a job waited, and which nodes it could have had: tables for people, JSON for machines.

use serde::Serialize;

use super::number::{asked, counted, gpus, grouped, thousandths};
use super::table::{Align, Rows, facts};
use crate::cluster::{Cluster, JobId, WHOLE_GPU};
use crate::decide::{Offer, Why};
use crate::simulate::{Cause, Explanation, FirstTry, Scenario, Wait};
use crate::workload::TraceJob;

/// Waits that a table shows, the longest ones.
const SHOWN: usize = 10;

/// The nodes that a job could have had, as JSON has them.
#[derive(Clone, Debug, Serialize)]
pub struct OffersOut<'a> {
    free_gpus: u64,
    /// Shares summed, and the sum rounded up.
    asks_gpus: u64,
    /// What is free and asked for, where that is shares.
    #[serde(flatten)]
    shares: Option<SharesOut>,
    nodes: Vec<OfferOut<'a>>,
}

#[derive(Clone, Copy, Debug, Serialize)]
struct SharesOut {
    free_gpu_milli: u64,
    asks_gpu_milli: u64,
}

#[derive(Clone, Debug, Serialize)]
struct OfferOut<'a> {
    kind: &'static str,
    free_gpus: u8,
    nodes: u64,
    fit: u64,
    allowed: u64,
    first: Vec<&'a str>,
}

impl<'a> OffersOut<'a> {
    /// Of a job of a cluster on which `free_gpus` GPUs are free, and `free_gpu_milli` thousandths with the rests of shared
    /// ones.
    pub fn new(cluster: &'a Cluster, job: JobId, free_gpus: u64, free_gpu_milli: u64, offers: &[Offer]) -> Self {
        let request = cluster.request_of(job);
        let gpus = u64::from(cluster.job(job).instances()) * u64::from(request.gpus);
        let asks_gpu_milli = gpus * u64::from(request.gpu_milli);
        let asks_gpus = asks_gpu_milli.div_ceil(u64::from(WHOLE_GPU));
        let shares = request.is_share().then_some(SharesOut { free_gpu_milli, asks_gpu_milli });
        let one = |offer: &Offer| OfferOut {
            kind: offer.kind.name(),
            free_gpus: offer.free,
            nodes: offer.nodes,
            fit: offer.fit,
            allowed: offer.allowed,
            first: offer.first.iter().map(|&node| cluster.node_name(node)).collect(),
        };
        Self { free_gpus, asks_gpus, shares, nodes: offers.iter().map(one).collect() }
    }

    /// For people.
    pub fn table(&self) -> String {
        let right = |name| (name, Align::Right);
        let mut rows = Rows::new(&[
            ("NODES THAT ARE", Align::Left),
            right("FREE GPUS"),
            right("NODES"),
            right("FIT"),
            right("ALLOWED"),
            ("SUCH AS", Align::Left),
        ]);
        for offer in &self.nodes {
            let mut cells = vec![offer.kind.to_owned(), offer.free_gpus.to_string()];
            cells.extend([offer.nodes, offer.fit, offer.allowed].map(grouped));
            cells.push(offer.first.join(" "));
            rows.push(cells);
        }
        let free = match self.shares {
            None => format!("{} free, {} asked for\n", counted(self.free_gpus, "GPU"), grouped(self.asks_gpus)),
            Some(SharesOut { free_gpu_milli, asks_gpu_milli }) => {
                format!("{} GPUs free, {} asked for\n", thousandths(free_gpu_milli), thousandths(asks_gpu_milli))
            }
        };
        if self.nodes.is_empty() { free } else { free + &rows.text() }
    }
}

#[derive(Serialize)]
struct ExplanationOut<'a> {
    policy: String,
    job: &'a str,
    submit_s: u64,
    start_s: Option<u64>,
    finish_s: Option<u64>,
    rejected: bool,
    waits: Vec<WaitOut<'a>>,
    first_try: Option<FirstTryOut<'a>>,
}

#[derive(Serialize)]
struct WaitOut<'a> {
    from_s: u64,
    to_s: u64,
    why: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    behind: Option<&'a str>,
}

#[derive(Serialize)]
struct FirstTryOut<'a> {
    at_s: u64,
    #[serde(flatten)]
    offers: OffersOut<'a>,
}

/// Why the job at a position of the trace waited, under one scheduler, as a line of JSON.
///
/// # Errors
/// As [`append_line`](super::append_line).
pub fn explanation_json(
    out: &mut Vec<u8>,
    scenario: &Scenario,
    position: usize,
    explanation: &Explanation,
) -> Result<(), serde_json::Error> {
    let name = |position: usize| &scenario.jobs()[position].name[..];
    let wait = |wait: &Wait| {
        let (why, behind) = match wait.cause {
            Cause::Blocked(why) => (why.name(), None),
            Cause::Behind(head, why) => (why.name(), Some(name(head))),
            Cause::Reserved(head) => ("reserved", Some(name(head))),
            Cause::Held => ("held", None),
            Cause::BehindHeld(head) => ("held", Some(name(head))),
        };
        WaitOut { from_s: wait.from, to_s: wait.to, why, behind }
    };
    let line = ExplanationOut {
        policy: explanation.scheduler.to_string(),
        job: name(position),
        submit_s: scenario.jobs()[position].submit_s,
        start_s: explanation.outcome.start(),
        finish_s: explanation.outcome.finish(),
        rejected: scenario.is_rejected(position),
        waits: explanation.waits.iter().map(wait).collect(),
        first_try: explanation
            .first_try
            .as_ref()
            .map(|first| FirstTryOut { at_s: first.at, offers: first_offers(scenario, position, first) }),
    };
    super::append_line(out, &line)
}

fn first_offers<'a>(scenario: &'a Scenario, position: usize, first: &FirstTry) -> OffersOut<'a> {
    let job = scenario.job_id(position);
    OffersOut::new(scenario.cluster(), job, first.free_gpus, first.free_milli, &first.offers)
}

/// The same for people.
pub fn explanation_table(scenario: &Scenario, position: usize, explanation: &Explanation) -> String {
    let job = &scenario.jobs()[position];
    let mut lines = vec![
        ("policy", explanation.scheduler.to_string()),
        ("job", format!("{}, {}", job.name, size(job))),
        ("submitted", format!("{} s", grouped(job.submit_s))),
    ];
    if scenario.is_rejected(position) {
        lines.push(("left out", "not even the empty cluster could take it".to_owned()));
        return facts(&lines);
    }
    let waited: u64 = explanation.waits.iter().map(|wait| wait.to - wait.from).sum();
    lines.push(match explanation.outcome.start() {
        Some(start) => ("started", format!("{} s, after waiting {} s", grouped(start), grouped(waited))),
        None => ("started", format!("never; it waited {} s and waits", grouped(waited))),
    });
    for (text, seconds) in sums(explanation) {
        lines.push(("", format!("{} s {text}", grouped(seconds))));
    }
    let mut text = facts(&lines);
    text += &longest(scenario, explanation);
    if let Some(first) = &explanation.first_try {
        text += &format!("\nAt its first try, at {} s: ", grouped(first.at));
        text += &first_offers(scenario, position, first).table();
    }
    text
}

/// Instances and what each asks for, as in `4 × 8 GPUs`.
fn size(job: &TraceJob) -> String {
    format!("{} × {}", grouped(job.instances), gpus(&asked(job.gpus_per_instance, job.gpu_milli)))
}

/// How long it waited for each reason, the longest first.
fn sums(explanation: &Explanation) -> Vec<(String, u64)> {
    let mut sums: Vec<(String, u64)> = Vec::new();
    for wait in &explanation.waits {
        let text = match wait.cause {
            Cause::Blocked(why) => format!("blocked itself by {}", why.name()),
            Cause::Behind(_, why) => format!("behind a head blocked by {}", why.name()),
            Cause::Reserved(_) => "since it would take what the head is promised".to_owned(),
            Cause::Held => "held back for a better moment".to_owned(),
            Cause::BehindHeld(_) => "behind a head that was held back".to_owned(),
        };
        match sums.iter_mut().find(|(other, _)| *other == text) {
            Some((_, sum)) => *sum += wait.to - wait.from,
            None => sums.push((text, wait.to - wait.from)),
        }
    }
    sums.sort_by_key(|&(_, sum)| std::cmp::Reverse(sum));
    sums
}

fn longest(scenario: &Scenario, explanation: &Explanation) -> String {
    let mut order: Vec<&Wait> = explanation.waits.iter().collect();
    order.sort_by_key(|wait| (std::cmp::Reverse(wait.to - wait.from), wait.from));
    let more = order.len().saturating_sub(SHOWN);
    order.truncate(SHOWN);
    order.sort_by_key(|wait| wait.from);
    if order.is_empty() {
        return String::new();
    }
    let right = |name| (name, Align::Right);
    let columns = [right("FROM"), right("TO"), right("SECONDS"), ("WHY", Align::Left)];
    let mut rows = Rows::new(&columns);
    let blocked = |why: Why| match why {
        Why::Capacity => "too few GPUs are free",
        Why::Fragmentation => "enough GPUs are free, but cannot be packed",
        Why::Constraint => "CPU, memory, model or topology",
        Why::Space => "it fits, but outside the policy's own space",
    };
    for wait in order {
        let head = |head: usize| {
            let job = &scenario.jobs()[head];
            format!("{} ({})", job.name, size(job))
        };
        let why = match wait.cause {
            Cause::Blocked(why) => format!("{}: {}", why.name(), blocked(why)),
            Cause::Behind(job, why) => format!("behind {}: {}, {}", head(job), why.name(), blocked(why)),
            Cause::Reserved(job) => format!("it would take what {} is promised", head(job)),
            Cause::Held => "held: it fits, and the policy waits for a better moment".to_owned(),
            Cause::BehindHeld(job) => format!("behind {}: held, it fits and waits for a better moment", head(job)),
        };
        rows.push([grouped(wait.from), grouped(wait.to), grouped(wait.to - wait.from), why]);
    }
    let more = if more > 0 { format!("and {} shorter times\n", grouped(more as u64)) } else { String::new() };
    format!("\n{}{more}", rows.text())
}
