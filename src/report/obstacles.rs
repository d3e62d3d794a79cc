//! Why a job waits: node by node, where it nearly fits, and the plan that would let it start.

use serde::Serialize;

use super::audit::region_name;
use super::first::explained;
use super::json::append_line;
use super::number::{counted, gpus, grouped, thousandths};
use super::plan::PlanReport;
use super::table::{Align, Rows, printable};
use crate::anchor::State;
use crate::cluster::{Cluster, DomainId, JobId, RackId, Request, WHOLE_GPU, Within};
use crate::decide::{Constraint, NodeClass, Obstacle, Obstacles, RegionFit, Why};

/// Nodes and regions that the table shows.
const SHOWN: usize = 5;

/// What is known of a job that waits.
#[derive(Clone, Copy, Debug)]
pub struct ObstaclesReport<'a> {
    /// The cluster.
    pub state: &'a State,
    /// The job, which does not run.
    pub job: JobId,
    /// What is in its way.
    pub obstacles: &'a Obstacles,
    /// The plan for it.
    pub plan: PlanReport<'a>,
}

#[derive(Serialize)]
struct Document<'a, P: Serialize> {
    job: &'a str,
    instances: u32,
    gpus_per_instance: u8,
    #[serde(skip_serializing_if = "Option::is_none")]
    gpu_milli: Option<u16>,
    within: Option<&'static str>,
    fits: bool,
    why: Option<&'static str>,
    binding: Option<Vec<&'static str>>,
    free_gpus: u64,
    free_gpu_milli: u64,
    asks_gpu_milli: u64,
    nodes: Vec<ClassOut<'a>>,
    nearest: NearestOut<'a>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    regions: Vec<RegionOut<'a>>,
    plan: P,
}

#[derive(Serialize)]
struct ClassOut<'a> {
    reason: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    gpu_milli: Option<u32>,
    nodes: u64,
    fit: u64,
    first: Vec<&'a str>,
}

#[derive(Serialize)]
struct NearestOut<'a> {
    #[serde(flatten)]
    region: Option<RegionKey<'a>>,
    fit: u64,
    of: u32,
    place: Vec<PlaceOut<'a>>,
}

#[derive(Serialize)]
struct PlaceOut<'a> {
    node: &'a str,
    instances: u64,
}

#[derive(Serialize)]
struct RegionOut<'a> {
    #[serde(flatten)]
    region: RegionKey<'a>,
    nodes: u64,
    fit: u64,
    free_gpus: u64,
}

#[derive(Serialize)]
struct RegionKey<'a> {
    rack: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    domain: Option<&'a str>,
}

impl<'a> RegionKey<'a> {
    fn new(cluster: &'a Cluster, within: Within, number: u32) -> Self {
        let of_rack = |rack: RackId| cluster.rack_name(rack);
        match within {
            Within::Rack => Self { rack: Some(of_rack(RackId(number))), domain: None },
            Within::Domain => {
                let domain = DomainId(number);
                Self { rack: cluster.domain_rack(domain).map(of_rack), domain: Some(cluster.domain_name(domain)) }
            }
        }
    }
}

impl<'a> ObstaclesReport<'a> {
    fn cluster(&self) -> &'a Cluster {
        self.state.cluster()
    }

    fn request(&self) -> &'a Request {
        self.cluster().request_of(self.job)
    }

    fn instances(&self) -> u32 {
        self.cluster().job(self.job).instances()
    }

    fn asks_milli(&self) -> u64 {
        u64::from(self.instances()) * u64::from(self.request().gpus) * u64::from(self.request().gpu_milli)
    }

    /// Instances of a class that count: no more than the job has.
    fn fit(&self, class: &NodeClass) -> u64 {
        class.room.min(u64::from(self.instances()))
    }

    /// Appends it as one document.
    ///
    /// # Errors
    /// As [`append_line`].
    pub fn json(&self, out: &mut Vec<u8>) -> Result<(), serde_json::Error> {
        let (cluster, request, obstacles) = (self.cluster(), self.request(), self.obstacles);
        let classes = obstacles.classes.iter().map(|class| ClassOut {
            reason: class.obstacle.map(Obstacle::name),
            gpu_milli: class.has_milli,
            nodes: class.nodes,
            fit: self.fit(class),
            first: class.first.iter().map(|&node| cluster.node_name(node)).collect(),
        });
        let place = obstacles.nearest.place.iter();
        let key = |number: u32| request.within.map(|within| RegionKey::new(cluster, within, number));
        let regions = obstacles.regions.iter().filter_map(|one| {
            Some(RegionOut { region: key(one.region)?, nodes: one.nodes, fit: one.fit, free_gpus: one.free_gpus })
        });
        let document = Document {
            job: cluster.job_name(self.job),
            instances: self.instances(),
            gpus_per_instance: request.gpus,
            gpu_milli: request.is_share().then_some(request.gpu_milli),
            within: request.within.map(|within| Constraint::Within(within).name()),
            fits: obstacles.why.is_none(),
            why: obstacles.why.map(|why| why.name()),
            binding: obstacles.binding.as_ref().map(|all| all.iter().map(|one| one.name()).collect()),
            free_gpus: self.state.free_gpus(),
            free_gpu_milli: self.state.free_gpu_milli(),
            asks_gpu_milli: self.asks_milli(),
            nodes: classes.collect(),
            nearest: NearestOut {
                region: obstacles.nearest.region.and_then(key),
                fit: obstacles.nearest.fit,
                of: self.instances(),
                place: place.map(|&(node, instances)| PlaceOut { node: cluster.node_name(node), instances }).collect(),
            },
            regions: regions.collect(),
            plan: self.plan.document(),
        };
        append_line(out, &document)
    }

    /// For people.
    pub fn table(&self) -> String {
        let request = self.request();
        let name = printable(self.cluster().job_name(self.job));
        let within = request.within.map_or("", |within| match within {
            Within::Domain => " within one domain",
            Within::Rack => " within one rack",
        });
        let asks = format!("{} × {}{within}", grouped(self.instances()), gpus(&request.gpus_text()));
        let verdict = match (self.obstacles.why, &self.obstacles.binding) {
            (None, _) => "it fits as the cluster is".to_owned(),
            (Some(why @ Why::Constraint), Some(binding)) => {
                let binding: Vec<&str> = binding.iter().map(|one| one.name()).collect();
                format!("blocked by {}: {}", why.name(), binding.join(", "))
            }
            (Some(why), _) => format!("blocked by {}", explained(why)),
        };
        let mut text = format!("{name} ({asks}): {verdict}.\n");
        text += &self.free();
        text += &self.binding();
        text += &format!("\n{}", self.classes());
        text += &format!("\n{}", self.nearest());
        text += &self.regions();
        text + &format!("\n{}", self.plan.table())
    }

    fn free(&self) -> String {
        let (free, asks) = (self.state.free_gpu_milli(), self.asks_milli());
        let is = |number: &str| if number == "1" { "is" } else { "are" };
        let [free, asks] = if self.request().is_share() {
            [free, asks].map(thousandths)
        } else {
            [self.state.free_gpus(), asks / u64::from(WHOLE_GPU)].map(grouped)
        };
        let (are_free, are_asked) = (is(&free), is(&asks));
        format!("{} {are_free} free on schedulable nodes, {asks} {are_asked} asked for.\n", gpus(&free))
    }

    fn binding(&self) -> String {
        let Some(all) = &self.obstacles.binding else {
            return "Neither CPU, memory, model, topology nor cordons are in the way, but GPUs.\n".to_owned();
        };
        let text = |constraint: &Constraint| match constraint {
            Constraint::Cpu => "its CPU",
            Constraint::Memory => "its memory",
            Constraint::Model => "its models",
            Constraint::Within(Within::Domain) => "its one domain",
            Constraint::Within(Within::Rack) => "its one rack",
            Constraint::Cordon => "cordons",
        };
        let words: Vec<&str> = all.iter().map(text).collect();
        if words.is_empty() { String::new() } else { format!("Without {} it would fit.\n", words.join(" and ")) }
    }

    fn classes(&self) -> String {
        let columns = [("NODES", Align::Right), ("FIT", Align::Right), ("WHY", Align::Left), ("SUCH AS", Align::Left)];
        let mut rows = Rows::new(&columns);
        for class in &self.obstacles.classes {
            let names = class.first.iter().take(3).map(|&node| self.cluster().node_name(node));
            let names: Vec<&str> = names.collect();
            rows.push([grouped(class.nodes), grouped(self.fit(class)), self.reason(class), names.join(" ")]);
        }
        rows.text()
    }

    /// Why no instance goes on the nodes of a class, or how many do.
    fn reason(&self, class: &NodeClass) -> String {
        let request = self.request();
        let has = class.has_milli.unwrap_or(0);
        match class.obstacle {
            None if request.gpus == 0 => "room".to_owned(),
            None if request.is_share() => format!("{} of a GPU left", thousandths(has.into())),
            None => format!("{} free", counted(has / u32::from(WHOLE_GPU), "GPU")),
            Some(Obstacle::GpuBusy) if request.is_share() => {
                format!("{} of a GPU left, need {}", thousandths(has.into()), request.gpus_text())
            }
            Some(Obstacle::GpuBusy) => {
                format!("{} free, need {}", counted(has / u32::from(WHOLE_GPU), "GPU"), request.gpus)
            }
            Some(Obstacle::Unschedulable) => "cordoned".to_owned(),
            Some(Obstacle::WrongModel) => "not of its models".to_owned(),
            Some(Obstacle::TooSmall) => format!("fewer than {}", counted(request.gpus, "GPU")),
            Some(Obstacle::Topology) => "in no domain or rack that is known".to_owned(),
            Some(Obstacle::NoCpu) => "too little CPU".to_owned(),
            Some(Obstacle::NoMemory) => "too little memory".to_owned(),
        }
    }

    fn nearest(&self) -> String {
        let nearest = &self.obstacles.nearest;
        let region = self.request().within.zip(nearest.region);
        let place = region.map_or(String::new(), |(within, region)| format!(" in {}", self.region(within, region)));
        let (fit, all) = (grouped(nearest.fit), counted(self.instances(), "instance"));
        let s = if self.instances() == 1 { "s" } else { "" };
        let mut text = format!("NEAREST PLACEMENT: {fit} of {all} fit{s} now{place}\n");
        for &(node, instances) in nearest.place.iter().take(SHOWN) {
            text += &format!("{} × {}\n", grouped(instances), printable(self.cluster().node_name(node)));
        }
        text + &more(nearest.place.len(), "nodes")
    }

    fn regions(&self) -> String {
        let regions = &self.obstacles.regions;
        let Some(within) = self.request().within.filter(|_| !regions.is_empty()) else { return String::new() };
        let first = if within == Within::Domain { "DOMAIN" } else { "RACK" };
        let columns =
            [(first, Align::Left), ("NODES", Align::Right), ("FREE GPUS", Align::Right), ("FIT", Align::Right)];
        let mut rows = Rows::new(&columns);
        for one in regions.iter().take(SHOWN) {
            let &RegionFit { region, nodes, fit, free_gpus } = one;
            let fit = format!("{} of {}", grouped(fit), grouped(self.instances()));
            rows.push([region_name(self.cluster(), within, region), grouped(nodes), grouped(free_gpus), fit]);
        }
        format!("\n{}{}", rows.text(), more(regions.len(), "with as few or fewer"))
    }

    fn region(&self, within: Within, number: u32) -> String {
        let kind = if within == Within::Domain { "domain" } else { "rack" };
        format!("{kind} {}", printable(&region_name(self.cluster(), within, number)))
    }
}

fn more(all: usize, what: &str) -> String {
    let more = all.saturating_sub(SHOWN);
    if more > 0 { format!("and {} more {what}\n", grouped(more as u64)) } else { String::new() }
}
