//! Whatever happens in whatever order, the service ends with what its client knows.
//!
//! The client is the truth: it keeps who holds what, says what happens, commits what the service decides, and puts all of
//! it again when the service has lost it.

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;
use slotwise::cluster::{Cluster, ClusterBuilder, GpuMask, JobSpec, NodeSpec, Seat, gpu_indices, lowest_gpus};
use slotwise::decide::{PlaceOptions, Policy};
use slotwise::evaluate::Place;
use slotwise::formats::{EditSpec, MoveSpec, SeatSpec, StartSpec};
use slotwise::serve::client::{Candidates, Submissions};
use slotwise::serve::grpc::generated::{PlaceResponse, Status};
use slotwise::serve::{Client, ClientError, Condition, Limits, Version};

use super::{Service, run};

const NODES: usize = 3;
const GPUS: u8 = 8;

/// What the client knows.
#[derive(Clone, Debug, Default)]
struct Truth {
    /// By name: GPUs an instance, and where the instances are.
    jobs: BTreeMap<String, (u8, Vec<(usize, GpuMask)>)>,
    cordoned: BTreeSet<usize>,
}

fn name(node: usize) -> String {
    format!("n{node}")
}

impl Truth {
    fn free(&self, node: usize) -> GpuMask {
        let held = self.jobs.values().flat_map(|(_, seats)| seats).filter(|seat| seat.0 == node);
        0xff & !held.fold(0, |mask, seat| mask | seat.1)
    }

    fn cluster(&self) -> Cluster {
        let mut builder = ClusterBuilder::new();
        let mut ids = Vec::new();
        for node in 0..NODES {
            let unschedulable = self.cordoned.contains(&node);
            let spec = NodeSpec { name: &name(node), gpus: GPUS, unschedulable, ..NodeSpec::default() };
            ids.push(builder.add_node(&spec).unwrap());
        }
        for (job, (gpus, seats)) in &self.jobs {
            let seats: Vec<Seat> =
                seats.iter().map(|&(node, mask)| Seat { node: ids[node], gpus: Some(mask) }).collect();
            builder.add_running(&JobSpec { name: job, gpus: *gpus, ..JobSpec::default() }, &seats).unwrap();
        }
        builder.finish().unwrap()
    }

    fn start(&mut self, job: &str, gpus: u8, node: usize) -> Option<EditSpec> {
        let mask = lowest_gpus(self.free(node), gpus).filter(|_| !self.jobs.contains_key(job))?;
        self.jobs.insert(job.to_owned(), (gpus, vec![(node, mask)]));
        let gpus_per_instance = gpus;
        let instances = vec![seat(node, mask)];
        let spec =
            StartSpec { job: job.into(), gpus_per_instance, migratable: true, instances, ..StartSpec::default() };
        Some(EditSpec::Start(spec))
    }

    fn relocate(&mut self, job: &str, node: usize) -> Option<EditSpec> {
        let (gpus, seats) = self.jobs.get(job)?.clone();
        let mask = lowest_gpus(self.free(node), gpus)?;
        let SeatSpec { node: to, gpus } = seat(node, mask);
        self.jobs.get_mut(job)?.1[0] = (node, mask);
        assert!(!seats.is_empty());
        Some(EditSpec::Moves(vec![MoveSpec { job: job.into(), instance: 0, node: to, from: None, gpus }]))
    }

    /// Learns what the service has decided.
    fn learn(&mut self, placed: &PlaceResponse, asked: &[(String, u8, u32)]) {
        let seats = placed.place.clone().unwrap_or_default();
        let moves = placed.moves.clone().unwrap_or_default();
        let to = moves.to.clone().unwrap_or_default();
        let (mut at, mut moved) = (0, 0);
        for (row, status) in placed.status().enumerate() {
            for _ in 0..placed.n_moves[row] {
                let instance = moves.instance[moved] as usize;
                let seat = (to.node[moved] as usize, to.gpus[moved] as GpuMask);
                self.jobs.get_mut(&moves.job[moved]).unwrap().1[instance] = seat;
                moved += 1;
            }
            let n = placed.n_places[row] as usize;
            let seat = |at: usize| (seats.node[at] as usize, seats.gpus[at] as GpuMask);
            match status {
                Status::Placed => {
                    let gpus = asked.iter().find(|asked| asked.0 == placed.job[row]).unwrap().1;
                    self.jobs.insert(placed.job[row].clone(), (gpus, (at..at + n).map(seat).collect()));
                }
                Status::Removed => {
                    self.jobs.remove(&placed.job[row]).unwrap();
                }
                _ => assert_eq!(n, 0),
            }
            at += n;
        }
    }

    /// Who holds what, in the order of names.
    fn holdings(cluster: &Cluster) -> BTreeMap<String, Vec<(u32, GpuMask)>> {
        let running = cluster.job_ids().filter(|&job| cluster.job(job).runs());
        let seats = |job| {
            let held = cluster.instances_of(job).map(|instance| cluster.instance(instance));
            held.filter_map(|held| Some((held.node()?.0, held.gpus()))).collect()
        };
        running.map(|job| (cluster.job_name(job).to_owned(), seats(job))).collect()
    }
}

fn seat(node: usize, mask: GpuMask) -> SeatSpec {
    SeatSpec { node: name(node), gpus: Some(gpu_indices(mask).map(u64::from).collect()) }
}

/// What happens next. Jobs go by small numbers, so that names come again.
#[derive(Clone, Debug)]
enum Event {
    Start(u8, u8, usize),
    End(u8),
    Move(u8, usize),
    Cordon(usize, bool),
    Score(u8),
    Place(u8, u8, u32, bool, bool),
    /// The last edit is sent again, with its id and its version of then.
    Again,
    /// Somebody asks for a version that has passed.
    Stale,
    /// An edit that cannot be, behind one that can.
    Refused,
    /// The service ends, and another begins.
    Crash,
    /// The client puts all it knows.
    Resync,
}

fn event() -> impl Strategy<Value = Event> {
    let (job, node) = (0u8..6, 0..NODES);
    prop_oneof![
        4 => (job.clone(), 1u8..=8, node.clone()).prop_map(|(job, gpus, node)| Event::Start(job, gpus, node)),
        3 => job.clone().prop_map(Event::End),
        2 => (job.clone(), node.clone()).prop_map(|(job, node)| Event::Move(job, node)),
        2 => (node, any::<bool>()).prop_map(|(node, on)| Event::Cordon(node, on)),
        2 => (1u8..=8).prop_map(Event::Score),
        4 => (job, 1u8..=8, 1u32..4, any::<bool>(), any::<bool>())
            .prop_map(|(job, gpus, n, commit, compass)| Event::Place(job, gpus, n, commit, compass)),
        1 => Just(Event::Again),
        1 => Just(Event::Stale),
        1 => Just(Event::Refused),
        1 => Just(Event::Crash),
        1 => Just(Event::Resync),
    ]
}

/// The client and its service.
struct World {
    service: Service,
    client: Client,
    truth: Truth,
    version: Version,
    /// A version that has passed.
    passed: Option<Version>,
    last: Option<(Condition, Vec<EditSpec>, Version)>,
    n: u32,
}

impl World {
    async fn new() -> Self {
        let service = Service::start(Limits::default()).await;
        let mut client = service.client().await;
        let truth = Truth::default();
        let version = client.put(&truth.cluster()).await.unwrap();
        Self { service, client, truth, version, passed: None, last: None, n: 0 }
    }

    fn condition(&mut self) -> Condition {
        self.n += 1;
        Condition { version: Some(self.version), id: Some(format!("change-{}", self.n)) }
    }

    fn advance(&mut self, version: Version) {
        if version != self.version {
            self.passed = Some(std::mem::replace(&mut self.version, version));
        }
    }

    async fn edit(&mut self, edit: Option<EditSpec>) {
        let Some(edit) = edit else { return };
        let condition = self.condition();
        let changed = self.client.edit(&condition, std::slice::from_ref(&edit)).await.unwrap();
        assert!(!changed.repeated);
        self.advance(changed.version);
        self.last = Some((condition, vec![edit], changed.version));
    }

    async fn happens(&mut self, event: Event) {
        let job = |job: u8| format!("job-{job}");
        match event {
            Event::Start(who, gpus, node) => {
                let edit = self.truth.start(&job(who), gpus, node);
                self.edit(edit).await;
            }
            Event::End(who) => {
                let ran = self.truth.jobs.remove(&job(who));
                self.edit(ran.map(|_| EditSpec::End(job(who)))).await;
            }
            Event::Move(who, node) => {
                let edit = self.truth.relocate(&job(who), node);
                self.edit(edit).await;
            }
            Event::Cordon(node, on) => {
                let edit = if on {
                    self.truth.cordoned.insert(node);
                    EditSpec::Cordon(name(node))
                } else {
                    self.truth.cordoned.remove(&node);
                    EditSpec::Uncordon(name(node))
                };
                self.edit(Some(edit)).await;
            }
            Event::Score(gpus) => {
                let mut batch = Candidates::new();
                let row = batch.job(&JobSpec { name: "asked", gpus, ..JobSpec::default() }, 1);
                for node in self.truth.cluster().node_ids() {
                    batch.candidate(row, &[Place { node, gpus: None }], &[]);
                }
                let scores = self.client.score(Some(self.version), &batch).await.unwrap();
                for (node, &rank) in scores.rank.iter().enumerate() {
                    let fits = self.truth.free(node).count_ones() >= u32::from(gpus);
                    assert_eq!(rank > 0, fits && !self.truth.cordoned.contains(&node));
                }
            }
            Event::Place(who, gpus, instances, commit, compass) => {
                let (name, condition) = (job(who), self.condition());
                if self.truth.jobs.contains_key(&name) {
                    return;
                }
                let spec = JobSpec { name: &name, gpus, ..JobSpec::default() };
                let mut queue = Submissions::new().submit(&spec, instances);
                if let Some(other) = self.truth.jobs.keys().next() {
                    queue = queue.remove(other);
                }
                let policy = if compass { Policy::Compass } else { Policy::BestFit };
                let options = PlaceOptions { policy, ..PlaceOptions::default() };
                let placed = self.client.place(&condition, queue.clone(), &options, commit).await.unwrap();
                if commit {
                    self.truth.learn(&placed, &[(name.clone(), gpus, instances)]);
                    self.advance(placed.version.parse().unwrap());
                    let again = self.client.place(&condition, queue, &options, true).await.unwrap();
                    assert!(again.repeated && again.place == placed.place && again.version == placed.version);
                }
            }
            Event::Again => {
                let Some((condition, edits, made)) = self.last.clone() else { return };
                let changed = self.client.edit(&condition, &edits).await.unwrap();
                assert!(changed.repeated && changed.version == made);
            }
            Event::Stale => {
                let Some(passed) = self.passed else { return };
                let condition = Condition { version: Some(passed), id: None };
                let edit = [EditSpec::Cordon(name(0))];
                match self.client.edit(&condition, &edit).await {
                    Err(ClientError::Stale { current }) => assert_eq!(current, self.version),
                    other => panic!("{other:?}"),
                }
            }
            Event::Refused => {
                let condition = self.condition();
                let edits = [EditSpec::Cordon(name(1)), EditSpec::End("nobody".into())];
                let refused = self.client.edit(&condition, &edits).await;
                assert!(matches!(refused, Err(ClientError::Refused(_))), "{refused:?}");
            }
            Event::Crash => {
                self.service = Service::start(Limits::default()).await;
                self.client = self.service.client().await;
                // Whoever asks hears that everything is gone, and puts it again.
                let condition = Condition { version: Some(self.version), id: None };
                self.client.forget_nodes();
                let edited = self.client.edit(&condition, &[EditSpec::Cordon(name(0))]).await;
                assert!(matches!(edited, Err(ClientError::NoCluster)), "{edited:?}");
                self.resync().await;
            }
            Event::Resync => self.resync().await,
        }
        assert_eq!(self.client.version().await.unwrap(), self.version);
    }

    async fn resync(&mut self) {
        let version = self.client.put(&self.truth.cluster()).await.unwrap();
        self.advance(version);
        self.last = None;
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]
    #[test]
    fn the_service_ends_with_what_its_client_knows(events in proptest::collection::vec(event(), 1..60)) {
        run(async {
            let mut world = World::new().await;
            for event in events {
                world.happens(event).await;
            }
            let (version, snapshot) = world.client.cluster().await.unwrap();
            let expected = world.truth.cluster();
            assert_eq!(version, world.version);
            assert_eq!(Truth::holdings(&snapshot.cluster), Truth::holdings(&expected));
            let schedulable = |cluster: &Cluster| cluster.nodes().iter().map(|node| node.schedulable()).collect::<Vec<_>>();
            assert_eq!(schedulable(&snapshot.cluster), schedulable(&expected));
            world.service.app.engine.run(None, |live| Ok(live.state()?.cluster().check_books())).await.unwrap().unwrap();
        });
    }
}
