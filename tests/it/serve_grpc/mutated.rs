//! Messages that are nearly right: nothing panics, and what is refused has changed nothing.

use prost::Message;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use slotwise::decide::PlaceOptions;
use slotwise::evaluate::Cpu;
use slotwise::formats::read_cluster;
use slotwise::serve::grpc::generated::{
    ApplyEditsRequest, Gangs, Jobs, Moves, Nodes, PlaceRequest, PutClusterRequest, Running, ScoreRequest, Seats,
    Waiting, put_cluster_request::Piece,
};
use slotwise::serve::grpc::{Pieces, candidates, edits, queue};
use slotwise::serve::{Condition, Live, PlaceCall, ScoreCall};

/// Every column in use.
fn jobs() -> Jobs {
    Jobs {
        name: vec!["x".into(), "y".into()],
        instances: vec![1, 2],
        gpus_per_instance: vec![1, 2],
        gpu_milli: vec![500, 1000],
        cpu_milli: vec![0, 1000],
        memory_mib: vec![0, 1],
        pinned: vec![true, false],
        within: vec![0, 2],
        n_models: vec![0, 1],
        models: vec![0],
        words: vec!["H100".into()],
        group_of: vec![String::new(); 2],
    }
}

/// The same and a job of two groups.
fn with_groups() -> Jobs {
    let mut jobs = jobs();
    jobs.name.extend(["z/1".into(), "z/2".into()]);
    jobs.group_of.extend(["z".into(), "z".into()]);
    jobs.gpus_per_instance.extend([0, 0]);
    jobs.within.extend([0, 0]);
    for (column, default) in [
        (&mut jobs.instances, 1),
        (&mut jobs.gpu_milli, 1000),
        (&mut jobs.cpu_milli, 0),
        (&mut jobs.memory_mib, 0),
        (&mut jobs.n_models, 0),
    ] {
        column.extend([default; 2]);
    }
    jobs.pinned.extend([false; 2]);
    jobs
}

fn seats() -> Option<Seats> {
    Some(Seats { node: vec![1, 2, 2], gpus: vec![1, 0b110000, 0] })
}

fn moves() -> Option<Moves> {
    let to = Some(Seats { node: vec![2], gpus: vec![0] });
    Some(Moves { job: vec!["b".into()], instance: vec![0], to, from: vec![u32::MAX] })
}

fn running() -> Running {
    let (remaining_s, move_cost_s) = (vec![-1, 7, 1, 1], vec![3, -1, 1, 1]);
    let gang = ["", "g", "", ""].map(String::from).to_vec();
    let seats = Some(Seats { node: vec![1, 2, 2, 1, 2], gpus: vec![1, 0b110000, 0, 0, 0] });
    Running { jobs: Some(with_groups()), seats, remaining_s, move_cost_s, gang }
}

/// One message of each kind, all of which are good.
fn messages() -> [Vec<u8>; 5] {
    let edits = ApplyEditsRequest {
        kind: vec![1, 4, 6, 3, 1, 2, 5, 1, 7],
        start: Some(running()),
        end: vec!["a".into()],
        n_moves: vec![1],
        moves: moves(),
        node: vec![0, 0],
        wait: Some(Waiting {
            job: vec!["w".into()],
            gpus: vec![8],
            gang: vec!["g".into()],
            gang_size: vec![2],
            ..Waiting::default()
        }),
        gang: Some(Gangs { gang: vec!["g".into()], size: vec![2], within: vec![1] }),
        ..ApplyEditsRequest::default()
    };
    let score = ScoreRequest {
        jobs: Some(jobs()),
        job: vec![0, 1],
        n_places: vec![1, 2],
        place: seats(),
        n_moves: vec![0, 1],
        moves: moves(),
        ..ScoreRequest::default()
    };
    let place = PlaceRequest {
        commit: true,
        jobs: Some(with_groups()),
        remove: vec!["a".into()],
        entry: vec![0, 1, 0, 0],
        ..PlaceRequest::default()
    };
    let nodes = Nodes {
        words: vec!["H100".into(), "r".into()],
        name: vec!["a".into(), "b".into(), "c".into()],
        gpus: vec![8, 4, 16],
        unavailable: vec![0, 8, 0],
        model: vec![1, 0, 1],
        domain: vec![0, 2, 2],
        rack: vec![2, 2, 0],
        cpu_milli: vec![u32::MAX, 5, 2000],
        memory_mib: vec![u32::MAX, 5, 7],
        cordoned: vec![false, true, false],
    };
    let piece = |piece| PutClusterRequest { piece: Some(piece) }.encode_to_vec();
    let nodes = piece(Piece::Nodes(nodes));
    [edits.encode_to_vec(), score.encode_to_vec(), place.encode_to_vec(), nodes, piece(Piece::Running(running()))]
}

/// Whether the message is understood, and the version another afterwards.
fn call(live: &mut Live, kind: usize, bytes: &[u8], nodes: &[u8]) -> (bool, bool) {
    let before = live.version();
    let done = match kind {
        0 => ApplyEditsRequest::decode(bytes).is_ok_and(|message| {
            let edits = edits(&message, live.state().unwrap().cluster());
            edits.is_ok_and(|edits| live.edit(&Condition::default(), &edits).is_ok())
        }),
        1 => ScoreRequest::decode(bytes).is_ok_and(|message| {
            let candidates = Box::new(move |cluster: &mut _| candidates(&message, cluster));
            live.score(vec![ScoreCall { version: None, candidates }]).remove(0).is_ok()
        }),
        2 => PlaceRequest::decode(bytes).is_ok_and(|message| {
            let options = PlaceOptions { threads: 1, ..PlaceOptions::default() };
            let call = PlaceCall { condition: Condition::default(), options, commit: true };
            live.place(&call, |cluster| queue(&message, cluster), &mut |_, _, _| Ok(())).is_ok()
        }),
        _ => {
            let mut pieces = Pieces::default();
            let mut push = |bytes: &[u8]| {
                PutClusterRequest::decode(bytes).is_ok_and(|message| pieces.push(message, 1 << 16).is_ok())
            };
            // Jobs want nodes first.
            let pushed = (kind == 3 || push(nodes)) && push(bytes);
            pushed && pieces.finish().is_ok_and(|snapshot| live.put(snapshot.cluster) != before)
        }
    };
    (done, live.version() != before)
}

#[test]
fn mutated_messages_spoil_nothing() {
    let cluster = read_cluster(&format!("{}/tests/golden/cluster.json", env!("CARGO_MANIFEST_DIR"))).unwrap().cluster;
    let mut live = Live::new(Box::new(Cpu::new(1).unwrap()));
    let messages = messages();
    for (kind, message) in messages.iter().enumerate() {
        live.put(cluster.clone());
        assert!(call(&mut live, kind, message, &messages[3]).0, "message {kind} is none that is good");
    }
    let mut random = ChaCha8Rng::seed_from_u64(1);
    let (mut refused, mut understood) = (0, 0);
    for round in 0..20_000 {
        let kind = round % messages.len();
        let mut bytes = messages[kind].clone();
        for _ in 0..random.random_range(1..4) {
            let at = random.random_range(0..bytes.len());
            match random.random_range(0..3) {
                0 => bytes[at] = random.random(),
                1 => bytes[at] ^= 1 << random.random_range(0..8),
                _ => drop(bytes.remove(at)),
            }
        }
        live.put(cluster.clone());
        let (done, changed) = call(&mut live, kind, &bytes, &messages[3]);
        live.state().unwrap().cluster().check_books().unwrap();
        assert!(done || !changed, "message {kind} was refused and changed something: {bytes:?}");
        refused += usize::from(!done);
        understood += usize::from(done);
    }
    assert!(refused > 500 && understood > 500, "{refused} refused, {understood} understood");
}
