//! The audit as one JSON document.

use serde::Serialize;
use serde::ser::Serializer;

use super::super::json::append_line;
use super::super::phi_star::WccReport;
use super::{PoolKey, wcc};
use crate::cluster::{Cluster, DomainId, JobId, RackId, Within};
use crate::decide::{Audit, Figures, Pending, RegionFigures, Regions, StartableJobs, Stranded, Why};

/// Appends the audit as one document.
///
/// # Errors
/// As [`append_line`].
pub fn audit_json(out: &mut Vec<u8>, cluster: &Cluster, audit: &Audit) -> Result<(), serde_json::Error> {
    let pools = audit.pools.iter().map(|pool| PoolOut {
        figures: FiguresOut::new(cluster, &pool.figures),
        pool: PoolKey::new(cluster, pool.pool),
    });
    append_line(
        out,
        &AuditOut {
            figures: FiguresOut::new(cluster, &audit.total),
            max_gang_within: WithinOut {
                domain: audit.domains.max_gang.as_deref().map(BySize),
                rack: audit.racks.max_gang.as_deref().map(BySize),
            },
            compaction: CompactionOut {
                moves: audit.compaction.moves,
                moved_gpus: audit.compaction.moved_gpus,
                partial: audit.compaction.partial,
                outside_abs: audit.compaction.outside,
            },
            startable: audit.startable.iter().map(StartableOut::new).collect(),
            pending: audit.pending.as_ref().map(|pending| PendingOut::new(cluster, pending)),
            pools: pools.collect(),
            intact: IntactOut { domains: audit.domains.intact, racks: audit.racks.intact },
            domains: regions(cluster, &audit.domains, Within::Domain),
            racks: regions(cluster, &audit.racks, Within::Rack),
            findings: &audit.findings,
        },
    )
}

#[derive(Serialize)]
struct AuditOut<'a> {
    #[serde(flatten)]
    figures: FiguresOut<'a>,
    max_gang_within: WithinOut<'a>,
    compaction: CompactionOut,
    startable: Vec<StartableOut>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pending: Option<PendingOut<'a>>,
    pools: Vec<PoolOut<'a>>,
    intact: IntactOut,
    domains: Vec<RegionOut<'a>>,
    racks: Vec<RegionOut<'a>>,
    findings: &'a [String],
}

#[derive(Serialize)]
struct WithinOut<'a> {
    domain: Option<BySize<'a>>,
    rack: Option<BySize<'a>>,
}

#[derive(Serialize)]
struct IntactOut {
    domains: u64,
    racks: u64,
}

#[derive(Serialize)]
struct CompactionOut {
    moves: u64,
    moved_gpus: u64,
    partial: u64,
    outside_abs: u64,
}

#[derive(Serialize)]
struct StartableOut {
    gpus: u64,
    instances: u64,
    gpus_per_instance: u8,
    now: u64,
    compacted: u64,
    ideal: u64,
}

impl StartableOut {
    fn new(jobs: &StartableJobs) -> Self {
        let &StartableJobs { gpus, instances, gpus_per_instance, now, compacted, ideal } = jobs;
        Self { gpus, instances, gpus_per_instance, now, compacted, ideal }
    }
}

#[derive(Serialize)]
struct PendingOut<'a> {
    jobs: u64,
    startable: u64,
    capacity: u64,
    fragmentation: u64,
    constraint: u64,
    though_free: Vec<WaitingOut<'a>>,
}

#[derive(Serialize)]
struct WaitingOut<'a> {
    job: &'a str,
    #[serde(flatten)]
    asks: AsksOut,
    why: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    proven: Option<bool>,
}

/// What a job asks for: so many instances that are alike, or groups of them.
#[derive(Serialize)]
#[serde(untagged)]
enum AsksOut {
    Alike(GroupOut),
    Groups { groups: Vec<GroupOut> },
}

#[derive(Serialize)]
struct GroupOut {
    instances: u32,
    gpus_per_instance: u8,
    #[serde(skip_serializing_if = "Option::is_none")]
    gpu_milli: Option<u16>,
}

impl GroupOut {
    fn of(cluster: &Cluster, job: JobId) -> Self {
        let request = cluster.request_of(job);
        Self {
            instances: cluster.job(job).instances(),
            gpus_per_instance: request.gpus,
            gpu_milli: request.is_share().then_some(request.gpu_milli),
        }
    }
}

impl<'a> PendingOut<'a> {
    fn new(cluster: &'a Cluster, pending: &'a Pending) -> Self {
        let alike = pending.alike.iter();
        let blocked = alike.filter_map(|alike| Some((alike, alike.why.filter(|&why| why != Why::Capacity)?)));
        let mut though_free: Vec<(JobId, WaitingOut<'_>)> = Vec::new();
        for (alike, why) in blocked {
            though_free.extend(alike.jobs.iter().map(|&job| {
                let waiting = WaitingOut {
                    job: cluster.job_name(job),
                    asks: AsksOut::Alike(GroupOut::of(cluster, job)),
                    why: why.name(),
                    proven: None,
                };
                (job, waiting)
            }));
        }
        let refused = pending.groups.iter().filter_map(|one| Some((one.job, one.refusal?)));
        though_free.extend(refused.filter(|(_, refusal)| refusal.why != Why::Capacity).map(|(job, refusal)| {
            let waiting = WaitingOut {
                job: cluster.whole_job_name(job.first()),
                asks: AsksOut::Groups { groups: job.jobs().map(|group| GroupOut::of(cluster, group)).collect() },
                why: refusal.why.name(),
                proven: Some(refusal.proven),
            };
            (job.first(), waiting)
        }));
        // Jobs are numbered as the queue submits them.
        though_free.sort_by_key(|&(job, _)| job);
        Self {
            jobs: pending.jobs(),
            startable: pending.startable(),
            capacity: pending.blocked(Why::Capacity),
            fragmentation: pending.blocked(Why::Fragmentation),
            constraint: pending.blocked(Why::Constraint),
            though_free: though_free.into_iter().map(|(_, waiting)| waiting).collect(),
        }
    }
}

#[derive(Serialize)]
struct PoolOut<'a> {
    #[serde(flatten)]
    figures: FiguresOut<'a>,
    pool: PoolKey<'a>,
}

#[derive(Serialize)]
struct FiguresOut<'a> {
    nodes: u64,
    gpus: u64,
    busy_gpus: u64,
    free_gpus: u64,
    empty: u64,
    partial: u64,
    full: u64,
    phi_star: u64,
    n_sif: i64,
    f: f64,
    f_star: f64,
    sif: f64,
    wcc: Option<WccReport>,
    outside_abs: Vec<OutsideOut<'a>>,
    by_free: Vec<FreeOut>,
    stranded: StrandedOut,
    max_gang: BySize<'a>,
    max_gang_compacted: BySize<'a>,
    max_gang_ideal: BySize<'a>,
}

#[derive(Serialize)]
struct OutsideOut<'a> {
    node: &'a str,
    reason: &'static str,
}

#[derive(Serialize)]
struct FreeOut {
    free: usize,
    nodes: u64,
    unschedulable: u64,
}

#[derive(Serialize)]
struct StrandedOut {
    cordon: u64,
    model: u64,
    cpu: u64,
    memory: u64,
    shape: u64,
    usable: u64,
}

impl StrandedOut {
    fn new(stranded: &Stranded) -> Self {
        let Stranded { cordon, model, cpu, memory, shape, usable } = stranded;
        Self {
            cordon: cordon.gpus,
            model: model.gpus,
            cpu: cpu.gpus,
            memory: memory.gpus,
            shape: shape.gpus,
            usable: usable.gpus,
        }
    }
}

impl<'a> FiguresOut<'a> {
    fn new(cluster: &'a Cluster, figures: &'a Figures) -> Self {
        let outside = figures.outside_abs.iter();
        let by_free = figures.by_free.iter().enumerate();
        Self {
            nodes: figures.nodes,
            gpus: figures.gpus,
            busy_gpus: figures.busy_gpus,
            free_gpus: figures.free_gpus(),
            empty: figures.empty,
            partial: figures.partial,
            full: figures.full,
            phi_star: figures.phi_star,
            n_sif: figures.n_sif(),
            f: figures.f(),
            f_star: figures.f_star(),
            sif: figures.sif(),
            wcc: wcc(figures),
            outside_abs: outside
                .map(|&(node, why)| OutsideOut { node: cluster.node_name(node), reason: why.name() })
                .collect(),
            by_free: by_free
                .map(|(free, alike)| FreeOut { free, nodes: alike.nodes, unschedulable: alike.unschedulable })
                .collect(),
            stranded: StrandedOut::new(&figures.stranded),
            max_gang: BySize(&figures.max_gang),
            max_gang_compacted: BySize(&figures.max_gang_compacted),
            max_gang_ideal: BySize(&figures.max_gang_ideal),
        }
    }
}

#[derive(Serialize)]
struct RegionOut<'a> {
    rack: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    domain: Option<&'a str>,
    nodes: u64,
    unschedulable: u64,
    gpus: u64,
    unavailable_gpus: u64,
    busy_gpus: u64,
    free_gpus: u64,
    empty: u64,
    partial: u64,
    full: u64,
    phi_star: u64,
    n_sif: i64,
    intact: bool,
    max_gang: BySize<'a>,
}

fn regions<'a>(cluster: &'a Cluster, regions: &'a Regions, within: Within) -> Vec<RegionOut<'a>> {
    let numbered = (0u32..).zip(&regions.each);
    numbered
        .map(|(number, figures)| match within {
            Within::Domain => {
                let domain = DomainId(number);
                let rack = cluster.domain_rack(domain).map(|rack| cluster.rack_name(rack));
                RegionOut::new(rack, Some(cluster.domain_name(domain)), figures)
            }
            Within::Rack => RegionOut::new(Some(cluster.rack_name(RackId(number))), None, figures),
        })
        .collect()
}

impl<'a> RegionOut<'a> {
    fn new(rack: Option<&'a str>, domain: Option<&'a str>, figures: &'a RegionFigures) -> Self {
        Self {
            rack,
            domain,
            nodes: figures.nodes,
            unschedulable: figures.unschedulable,
            gpus: figures.gpus,
            unavailable_gpus: figures.unavailable_gpus,
            busy_gpus: figures.busy_gpus,
            free_gpus: figures.free_gpus(),
            empty: figures.empty,
            partial: figures.partial,
            full: figures.full,
            phi_star: figures.phi_star,
            n_sif: figures.n_sif(),
            intact: figures.intact(),
            max_gang: BySize(&figures.max_gang),
        }
    }
}

/// Counts by instance size, as an object in the order of the sizes.
struct BySize<'a>(&'a [(u8, u64)]);

impl Serialize for BySize<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().copied())
    }
}
