//! Why a job waited, and which nodes it could have had: tables for people, JSON for machines.

use serde::Serialize;

use super::number::{grouped, thousandths};
use super::table::{Align, Rows, facts};
use crate::cluster::{Cluster, JobId, WHOLE_GPU};
use crate::decide::{Offer, OfferKind, Why};
use crate::simulate::{Cause, Explanation, FirstTry, Scenario, Wait};

/// Waits that a table shows, the longest ones.
const SHOWN: usize = 10;

/// The nodes that a job could have had, as JSON has them.
#[derive(Clone, Debug, Serialize)]
pub struct OffersOut<'a> {
    free_gpus: u64,
    asks_gpus: u64,
    /// Of a share: in thousandths, what shared devices have left included.
    #[serde(skip_serializing_if = "Option::is_none")]
    free_gpu_milli: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    asks_gpu_milli: Option<u64>,
    nodes: Vec<OfferOut<'a>>,
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
    /// Of a job of a cluster on which `free_gpus` GPUs are free.
    pub fn new(cluster: &'a Cluster, job: JobId, free_gpus: u64, offers: &[Offer]) -> Self {
        let request = cluster.request_of(job);
        let asks_milli =
            u64::from(cluster.job(job).instances()) * u64::from(request.gpus) * u64::from(request.gpu_milli);
        let open = offers.iter().filter(|offer| offer.kind != OfferKind::Cordoned);
        let free_milli: u64 = open.map(|offer| offer.left_milli).sum();
        let one = |offer: &Offer| OfferOut {
            kind: offer.kind.name(),
            free_gpus: offer.free,
            nodes: offer.nodes,
            fit: offer.fit,
            allowed: offer.allowed,
            first: offer.first.iter().map(|&node| cluster.node_name(node)).collect(),
        };
        let of_share = |milli: u64| request.is_share().then_some(milli);
        Self {
            free_gpus,
            asks_gpus: asks_milli.div_ceil(u64::from(WHOLE_GPU)),
            free_gpu_milli: of_share(free_milli),
            asks_gpu_milli: of_share(asks_milli),
            nodes: offers.iter().map(one).collect(),
        }
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
        let [free, asks] = match (self.free_gpu_milli, self.asks_gpu_milli) {
            (Some(free), Some(asks)) => [free, asks].map(thousandths),
            _ => [self.free_gpus, self.asks_gpus].map(grouped),
        };
        let free = format!("{free} GPUs free, {asks} asked for\n");
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
    OffersOut::new(scenario.cluster(), scenario.job_id(position), first.free_gpus, &first.offers)
}

/// The same for people.
pub fn explanation_table(scenario: &Scenario, position: usize, explanation: &Explanation) -> String {
    let job = &scenario.jobs()[position];
    let mut lines = vec![
        ("policy", explanation.scheduler.to_string()),
        ("job", format!("{}, {} × {} GPUs", job.name, grouped(job.instances), job.gpus_per_instance)),
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

/// How long it waited for each reason, the longest first.
fn sums(explanation: &Explanation) -> Vec<(String, u64)> {
    let mut sums: Vec<(String, u64)> = Vec::new();
    for wait in &explanation.waits {
        let text = match wait.cause {
            Cause::Blocked(why) => format!("blocked itself by {}", why.name()),
            Cause::Behind(_, why) => format!("behind a head blocked by {}", why.name()),
            Cause::Reserved(_) => "since it would take what the head is promised".to_owned(),
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
            format!("{} ({} × {})", job.name, grouped(job.instances), job.gpus_per_instance)
        };
        let why = match wait.cause {
            Cause::Blocked(why) => format!("{}: {}", why.name(), blocked(why)),
            Cause::Behind(job, why) => format!("behind {}: {}, {}", head(job), why.name(), blocked(why)),
            Cause::Reserved(job) => format!("it would take what {} is promised", head(job)),
        };
        rows.push([grouped(wait.from), grouped(wait.to), grouped(wait.to - wait.from), why]);
    }
    let more = if more > 0 { format!("and {} shorter times\n", grouped(more as u64)) } else { String::new() };
    format!("\n{}{more}", rows.text())
}
