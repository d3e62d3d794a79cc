//! Which charts a comparison has, and the numbers behind each.

use serde_json::Value;

use super::super::number::{counted, grouped};
use super::axis::Axis;
use super::chart::{Chart, Line};
use super::palette::{self, INK};
use super::{Run, Setting};
use crate::cluster::WHOLE_GPU;
use crate::simulate::{Bucket, Curve, Gauge, LoadBin, LoadCurve, Overview, Scenario};

/// A chart with what belongs to it.
#[derive(Clone, Debug)]
pub(super) struct Figure {
    /// Its name in files and links.
    pub(super) name: &'static str,
    /// What is drawn.
    pub(super) chart: Chart,
    /// How it is to be read.
    pub(super) about: String,
    /// What of the series over time it shows, if it shows one.
    pub(super) gauge: Option<Gauge>,
    /// The numbers: names of columns, and rows.
    pub(super) numbers: (Vec<String>, Vec<Vec<String>>),
}

/// The names of all figures, in the order of the page.
pub(super) const NAMES: [&str; 8] = [
    "n-sif",
    "utilisation",
    "empty-nodes",
    "queue",
    "completion-times",
    "waits",
    "allocation-by-load",
    "fragmentation-by-load",
];

/// The most rows of numbers behind a chart over time.
const ROWS: u64 = 24;

/// The most steps of a cumulative distribution.
const STEPS: usize = 256;

/// What figures are made of.
#[derive(Clone, Copy, Debug)]
pub(super) struct Source<'a> {
    /// What all runs share.
    pub(super) setting: &'a Setting<'a>,
    /// The cluster and the jobs.
    pub(super) scenario: &'a Scenario,
    /// The runs.
    pub(super) runs: &'a [Run],
    /// What was kept of each.
    pub(super) overviews: &'a [&'a Overview],
    /// Each as JSON.
    pub(super) documents: &'a [Value],
}

/// All figures.
pub(super) fn figures(source: &Source<'_>) -> Vec<Figure> {
    let bound = 2 * source.scenario.cluster().pools().len() as u64;
    let over_time = [
        (Gauge::NSif, "N·SIF over time: avoidable partial nodes"),
        (Gauge::BusyGpus, "Utilisation over time: share of GPUs that are busy"),
        (Gauge::EmptyNodes, "Empty nodes over time"),
        (Gauge::Waiting, "Queue over time: waiting jobs"),
    ];
    let times = [
        (Times::Completion, "Completion times: share of jobs by time from submission to finish"),
        (Times::Wait, "Waits: share of jobs by time from submission to start"),
    ];
    let by_load = [
        (Load::Allocation, "Allocation by arrived load: share of the GPUs that running jobs ask for"),
        (Load::Fragmentation, "Fragmentation by arrived load: SIF, the share of avoidable partial nodes"),
    ];
    let over_time = over_time.map(|(gauge, title)| source.over_time(gauge, title, bound));
    let times = times.map(|(which, title)| source.distribution(which, title));
    let by_load = by_load.map(|(what, title)| source.by_load(what, title));
    over_time.into_iter().chain(times).chain(by_load).collect()
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Times {
    Completion,
    Wait,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Load {
    Allocation,
    Fragmentation,
}

impl Source<'_> {
    fn names(&self) -> impl Iterator<Item = String> + '_ {
        self.runs.iter().map(|run| run.outcome.scheduler.to_string())
    }

    /// The columns of numbers by run, after one of another name.
    fn columns(&self, first: &str) -> Vec<String> {
        std::iter::once(first.to_owned()).chain(self.names()).collect()
    }

    fn over_time(&self, gauge: Gauge, title: &str, bound: u64) -> Figure {
        let factor = match gauge {
            Gauge::BusyGpus => 100.0 / self.setting.gpus.max(1) as f64,
            _ => 1.0,
        };
        let line = |(at, (name, overview)): (usize, (String, &&Overview))| {
            let curve = &overview.curve;
            let (points, band) = steps(curve.width(), curve.buckets(), gauge, factor);
            Line { name, colour: palette::run(at), points, band }
        };
        let lines: Vec<Line> = self.names().zip(self.overviews).enumerate().map(line).collect();
        let ends = lines.iter().filter_map(|line| line.points.last()).map(|&(x, _)| x);
        let seconds = ends.fold(0.0, f64::max);
        let most = self.overviews.iter().flat_map(|overview| overview.curve.buckets());
        let most = most.map(|bucket| bucket.extent(gauge).max).max().unwrap_or(0) as f64;
        let (y, bound) = match gauge {
            Gauge::NSif => {
                let name = if bound == 2 { "2".to_owned() } else { format!("2 in each of {} pools", bound / 2) };
                (Axis::log_counts(most.max(bound as f64)), Some((bound as f64, name)))
            }
            Gauge::BusyGpus => (Axis::percent(), None),
            Gauge::EmptyNodes => (Axis::counts(most), None),
            Gauge::Waiting => (Axis::log_counts(most), None),
        };
        let about = match gauge {
            Gauge::NSif => {
                "Partial nodes beyond those that no packing of what runs could avoid. COMPASS-ABS bounds SIF \
                by 2/N in a pool, which is N·SIF = 2, the dashed line, where its conditions hold. The scale is logarithmic."
                    .to_owned()
            }
            Gauge::BusyGpus => format!("Of {}.", counted(self.setting.gpus, "GPU")),
            Gauge::EmptyNodes => {
                format!("Of {}: room for jobs that need whole ones.", counted(self.setting.nodes, "node"))
            }
            Gauge::Waiting => "The scale is logarithmic.".to_owned(),
        };
        let chart = Chart { title: title.to_owned(), x: Axis::time(seconds), y, lines, bound };
        Figure { name: NAMES[gauge as usize], chart, about, gauge: Some(gauge), numbers: self.slots(gauge, factor) }
    }

    /// Means and maxima of a gauge in a few slots of time.
    fn slots(&self, gauge: Gauge, factor: f64) -> (Vec<String>, Vec<Vec<String>>) {
        let curves = || self.overviews.iter().map(|overview| &overview.curve);
        // Widths are powers of two: the widest is a multiple of all.
        let widest = curves().map(Curve::width).max().unwrap_or(1);
        let n =
            curves().map(|curve| (curve.width() * curve.buckets().len() as u64).div_ceil(widest)).max().unwrap_or(0);
        let width = widest.saturating_mul(n.div_ceil(ROWS).max(1));
        let slots: Vec<Vec<Bucket>> = curves().map(|curve| curve.slots(width)).collect();
        let n = slots.iter().map(Vec::len).max().unwrap_or(0);
        let row = |at: usize| {
            let cell = |buckets: &Vec<Bucket>| match buckets.get(at) {
                Some(bucket) => {
                    let mean = bucket.mean(gauge) * factor;
                    format!("{mean:.1} ({:.0}–{:.0})", least(bucket, gauge, factor), most(bucket, gauge, factor))
                }
                None => String::new(),
            };
            std::iter::once(grouped(at as u64 * width)).chain(slots.iter().map(cell)).collect()
        };
        (self.columns("from second"), (0..n).map(row).collect())
    }

    fn distribution(&self, which: Times, title: &str) -> Figure {
        let mut lines = Vec::new();
        for (at, (name, run)) in self.names().zip(self.runs).enumerate() {
            let jobs = self.scenario.jobs().iter().zip(&run.outcome.jobs);
            let times = jobs.filter_map(|(job, became)| {
                let (start, finish) = (became.start()?, became.finish()?);
                Some(if which == Times::Completion { finish } else { start } - job.submit_s)
            });
            let points = distribution(&mut times.collect::<Vec<u64>>());
            lines.push(Line { name, colour: palette::run(at), points, band: Vec::new() });
        }
        let most = lines.iter().filter_map(|line| line.points.last()).map(|&(x, _)| x).fold(0.0, f64::max);
        let chart = Chart { title: title.to_owned(), x: Axis::log_time(most), y: Axis::percent(), lines, bound: None };
        let (name, key) = match which {
            Times::Completion => (NAMES[4], "jct_s"),
            Times::Wait => (NAMES[5], "wait_s"),
        };
        let row = |(name, document): (String, &Value)| {
            let cell = |field: &&str| match document[key][field].as_f64() {
                Some(value) => grouped(value.round() as i128),
                None => "-".to_owned(),
            };
            std::iter::once(name).chain(QUANTILES.iter().map(cell)).collect()
        };
        let columns = std::iter::once("policy").chain(QUANTILES).map(str::to_owned).collect();
        let rows = self.names().zip(self.documents).map(row).collect();
        let about =
            "Of the jobs that finished; times are on a logarithmic scale. The numbers are in seconds.".to_owned();
        Figure { name, chart, about, gauge: None, numbers: (columns, rows) }
    }

    fn by_load(&self, what: Load, title: &str) -> Figure {
        let whole = match what {
            Load::Allocation => self.setting.gpus,
            Load::Fragmentation => self.setting.nodes,
        };
        let share = |bin: &LoadBin| {
            let part = match what {
                Load::Allocation => bin.allocated_milli as f64 / f64::from(WHOLE_GPU),
                Load::Fragmentation => bin.n_sif as f64,
            };
            part * 100.0 / (bin.seconds as f64 * whole.max(1) as f64)
        };
        let last = LoadCurve::MOST_PERCENT;
        let middle = |percent: usize| if percent == last { percent as f64 } else { percent as f64 + 0.5 };
        let mut lines = Vec::new();
        for (at, (name, overview)) in self.names().zip(self.overviews).enumerate() {
            let bins = overview.load.bins().iter().enumerate().filter(|(_, bin)| bin.seconds > 0);
            let points = bins.map(|(percent, bin)| (middle(percent), share(bin))).collect();
            lines.push(Line { name, colour: palette::run(at), points, band: Vec::new() });
        }
        let end =
            |pick: fn(&(f64, f64)) -> f64| lines.iter().flat_map(|line| &line.points).map(pick).fold(1.0, f64::max);
        let (x, most) = (end(|point| point.0), end(|point| point.1));
        let (name, y) = match what {
            Load::Allocation => (NAMES[6], Axis::percent()),
            Load::Fragmentation => (NAMES[7], Axis::percent_to(most)),
        };
        if what == Load::Allocation {
            let ideal = vec![(0.0, 0.0), (x.min(100.0), x.min(100.0)), (x, x.min(100.0))];
            lines.push(Line { name: "ideal".to_owned(), colour: INK, points: ideal, band: Vec::new() });
        }
        let about = format!(
            "Arrived load: what all jobs ask for that run or wait, shares of a GPU as such, as a share of the cluster; means \
             over the time spent at each percent, all above {last} % at {last} %.{}",
            if what == Load::Allocation { " The dark line is all that could be allocated." } else { "" }
        );
        let row = |from: usize| {
            let cell = |overview: &&Overview| {
                let bins = &overview.load.bins()[from..(from + 10).min(last + 1)];
                let sum = bins.iter().fold(LoadBin::default(), |sum, bin| LoadBin {
                    seconds: sum.seconds + bin.seconds,
                    allocated_milli: sum.allocated_milli + bin.allocated_milli,
                    n_sif: sum.n_sif + bin.n_sif,
                });
                if sum.seconds > 0 { format!("{:.2} %", share(&sum)) } else { String::new() }
            };
            let name = if from == last { format!("{from} % and more") } else { format!("{from} to {} %", from + 10) };
            std::iter::once(name).chain(self.overviews.iter().map(cell)).collect::<Vec<String>>()
        };
        let rows = (0..=last).step_by(10).map(row).filter(|row| row[1..].iter().any(|cell| !cell.is_empty()));
        let numbers = (self.columns("arrived load"), rows.collect());
        let chart = Chart { title: title.to_owned(), x: Axis::percent_to(x), y, lines, bound: None };
        Figure { name, chart, about, gauge: None, numbers }
    }
}

/// The quantiles of the table behind a distribution.
const QUANTILES: [&str; 5] = ["mean", "p50", "p90", "p99", "max"];

fn least(bucket: &Bucket, gauge: Gauge, factor: f64) -> f64 {
    bucket.extent(gauge).min as f64 * factor
}

fn most(bucket: &Bucket, gauge: Gauge, factor: f64) -> f64 {
    bucket.extent(gauge).max as f64 * factor
}

type Points = Vec<(f64, f64)>;
type Band = Vec<(f64, f64, f64)>;

/// A line with a step a bucket, at its mean, and a band from its least to its most value; none if nothing ever changes
/// within a bucket.
fn steps(width: u64, buckets: &[Bucket], gauge: Gauge, factor: f64) -> (Points, Band) {
    let (mut points, mut band) = (Points::new(), Band::new());
    for (at, bucket) in buckets.iter().enumerate() {
        let from = at as f64 * width as f64;
        let to = from + bucket.seconds as f64;
        let mean = bucket.mean(gauge) * factor;
        match points.last_mut() {
            Some(last) if last.1 == mean => last.0 = to,
            _ => points.extend([(from, mean), (to, mean)]),
        }
        let (least, most) = (least(bucket, gauge, factor), most(bucket, gauge, factor));
        match band.last_mut() {
            Some(last) if (last.1, last.2) == (least, most) => last.0 = to,
            _ => band.extend([(from, least, most), (to, least, most)]),
        }
    }
    if buckets.iter().all(|bucket| bucket.extent(gauge).min == bucket.extent(gauge).max) {
        band.clear();
    }
    (points, band)
}

/// The steps of a cumulative distribution, in percent: each at a value that is there, of many only some, evenly by rank.
fn distribution(values: &mut [u64]) -> Points {
    values.sort_unstable();
    let n = values.len();
    let steps = n.min(STEPS);
    let mut points = Points::new();
    for step in 1..=steps {
        let rank = (n as u128 * step as u128).div_ceil(steps as u128) as usize;
        let (value, share) = (values[rank - 1] as f64, rank as f64 * 100.0 / n as f64);
        match points.last_mut() {
            Some(last) if last.0 == value => last.1 = share,
            last => {
                let before = last.map_or(0.0, |last| last.1);
                points.extend([(value, before), (value, share)]);
            }
        }
    }
    points
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_distribution_steps_at_values_that_are_there() {
        assert_eq!(distribution(&mut []), []);
        assert_eq!(
            distribution(&mut [7, 0, 7, 3]),
            [(0.0, 0.0), (0.0, 25.0), (3.0, 25.0), (3.0, 50.0), (7.0, 50.0), (7.0, 100.0)]
        );
        let many = distribution(&mut (1..=1_000_000).collect::<Vec<u64>>());
        assert_eq!(many.len(), 2 * STEPS);
        assert!(many.iter().skip(1).step_by(2).all(|&(value, share)| value * 100.0 / 1e6 == share));
        assert_eq!(many[many.len() - 1], (1_000_000.0, 100.0));
    }
}
