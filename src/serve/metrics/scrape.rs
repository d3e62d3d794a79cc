//! Gauges that are read where they are kept when somebody asks: those of the cluster, and of its thread.

use std::fmt::Error;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeGaugeValue, EncodeLabelSet, MetricEncoder, NoLabelSet};
use prometheus_client::metrics::MetricType;
use prometheus_client::registry::Unit;

use super::Seen;
use crate::serve::engine::{Engine, EngineCounts};
use crate::serve::live::{GangRoom, Picture, Product, Totals};

/// So many models are told apart; GPUs of any further ones are counted together, as `other`.
const MOST_PRODUCTS: usize = 32;

/// What a counter of the engine is called, what it says, and where it is.
type EngineCounter = (&'static str, &'static str, fn(&EngineCounts) -> &AtomicU64);

const ENGINE: [EngineCounter; 5] = [
    ("engine_calls", "Calls that the cluster's thread answered", |counts| &counts.calls),
    ("engine_evaluations", "Evaluations of candidates, each for one or more calls", |counts| &counts.evaluations),
    ("engine_scored", "Calls whose candidates were part of those evaluations", |counts| &counts.scored),
    ("engine_late", "Calls whose deadline had passed before their turn", |counts| &counts.late),
    ("engine_busy", "Calls that found the queue full", |counts| &counts.busy),
];

#[derive(Debug)]
pub(super) struct Scrape {
    pub(super) engine: Engine,
    pub(super) seen: Arc<Mutex<Seen>>,
}

impl Collector for Scrape {
    fn encode(&self, encoder: DescriptorEncoder<'_>) -> Result<(), Error> {
        let mut out = Out(encoder);
        out.gauge("engine_waiting", "Calls that wait for the cluster's thread", &(self.engine.waiting() as u64))?;
        for (name, help, of) in ENGINE {
            let mut metric = out.metric(name, help, None, MetricType::Counter)?;
            metric.encode_counter::<NoLabelSet, u64, u64>(&of(self.engine.counts()).load(Ordering::Relaxed), None)?;
        }
        // The guard must not outlive this line: encoding takes a while.
        let Seen { picture, backend } = self.seen.lock().unwrap_or_else(PoisonError::into_inner).clone();
        if !backend.is_empty() {
            let mut metric = out.metric("backend", "What scores candidates", None, MetricType::Info)?;
            metric.encode_info(&[("backend", backend)])?;
        }
        out.gauge("cluster_loaded", "Whether there is a cluster", &u64::from(picture.is_some()))?;
        picture.map_or(Ok(()), |picture| out.cluster(&picture))
    }
}

struct Out<'a>(DescriptorEncoder<'a>);

impl Out<'_> {
    fn metric<'s>(
        &'s mut self,
        name: &'s str,
        help: &str,
        unit: Option<&'s Unit>,
        kind: MetricType,
    ) -> Result<MetricEncoder<'s>, Error> {
        // As the registry does with what is registered.
        self.0.encode_descriptor(name, &format!("{help}."), unit, kind)
    }

    fn gauge(&mut self, name: &str, help: &str, value: &impl EncodeGaugeValue) -> Result<(), Error> {
        self.metric(name, help, None, MetricType::Gauge)?.encode_gauge(value)
    }

    /// A gauge for each set of labels.
    fn gauges<L: EncodeLabelSet>(
        &mut self,
        name: &str,
        help: &str,
        values: impl IntoIterator<Item = (L, u64)>,
    ) -> Result<(), Error> {
        let mut metric = self.metric(name, help, None, MetricType::Gauge)?;
        for (labels, value) in values {
            metric.encode_family(&labels)?.encode_gauge(&value)?;
        }
        Ok(())
    }

    fn cluster(&mut self, picture: &Picture) -> Result<(), Error> {
        let age = picture.since.elapsed().as_secs_f64();
        let help = "How long ago the state of the cluster last changed";
        let mut metric = self.metric("state_age", help, Some(&Unit::Seconds), MetricType::Gauge)?;
        metric.encode_gauge(&age)?;
        self.gauge("generation", "Changes of the cluster in this life of the service", &picture.version.generation)?;
        let totals = &picture.totals;
        self.gpus(totals)?;
        let nodes = [("empty", totals.empty), ("partial", totals.partial), ("full", totals.full)];
        let nodes = nodes.map(|(state, n)| ([("state", state)], n));
        self.gauges("nodes", "Nodes by how much of them is held", nodes)?;
        self.gauge("unschedulable_nodes", "Nodes that take no job", &totals.unschedulable)?;
        let free = totals.free_nodes.iter().enumerate().map(|(free, &n)| ([("free_gpus", free)], n));
        self.gauges("free_nodes", "Schedulable nodes by their free GPUs", free)?;
        self.gangs(&totals.gangs)?;
        let intact = [([("level", "rack")], totals.intact_racks), ([("level", "domain")], totals.intact_domains)];
        self.gauges("intact_regions", "Racks and NVLink domains of schedulable nodes that hold nothing", intact)?;
        self.gauge("sif_nodes", "Avoidable partial nodes: those beyond phi star", &totals.n_sif)?;
        self.gauge("phi_star_nodes", "Partial nodes that no packing of what runs avoids", &totals.phi_star)?;
        let share = |part: f64| if totals.nodes() == 0 { 0.0 } else { part / totals.nodes() as f64 };
        self.gauge("fragmentation_ratio", "The share of partial nodes, F", &share(totals.partial as f64))?;
        self.gauge("sif_ratio", "The share of avoidable partial nodes, SIF", &share(totals.n_sif as f64))?;
        self.gauge("running_jobs", "Jobs that run", &totals.running_jobs)?;
        self.gauge("waiting_jobs", "Jobs that are known to wait", &totals.waiting_jobs)?;
        self.gauge("waiting_gpus", "GPUs that those jobs ask for", &totals.waiting_gpus)
    }

    fn gpus(&mut self, totals: &Totals) -> Result<(), Error> {
        let (named, others) = totals.products.split_at(totals.products.len().min(MOST_PRODUCTS));
        let states = |product: &Product| {
            let Product { allocated, free, stranded, unavailable, .. } = *product;
            [("allocated", allocated), ("free", free), ("stranded", stranded), ("unavailable", unavailable)]
        };
        let mut rest = [("", 0); 4];
        for product in others {
            rest.iter_mut().zip(states(product)).for_each(|(sum, (state, n))| *sum = (state, sum.1 + n));
        }
        let of = |product: &Product| product.product.clone().unwrap_or_else(|| "unknown".to_owned());
        let all = named.iter().map(|product| (of(product), states(product)));
        let all = all.chain((!others.is_empty()).then(|| ("other".to_owned(), rest)));
        let labelled = all.flat_map(|(product, states)| {
            states.map(|(state, n)| ([("state", state.to_owned()), ("product", product.clone())], n))
        });
        self.gauges("gpus", "GPUs by state and model", labelled)
    }

    fn gangs(&mut self, gangs: &[GangRoom]) -> Result<(), Error> {
        let labelled = gangs.iter().flat_map(|gang| {
            let levels = [("cluster", gang.cluster), ("rack", gang.rack), ("domain", gang.domain)];
            levels.map(|(level, n)| {
                ([("level", level.to_owned()), ("gpus_per_instance", gang.gpus_per_instance.to_string())], n)
            })
        });
        let help = "The largest gang that fits at once, within one region of the level, by the size of its instances";
        self.gauges("largest_gang_gpus", help, labelled)
    }
}
