//! A Kubernetes cluster as `kubectl get nodes,pods -A -o json` (or `-o yaml`) dumps it.

mod budget;
mod claim;
mod device;
mod gang;
mod holding;
mod kinds;
mod listing;
mod node;
mod object;
mod pod;
mod quantity;
mod resource;
mod running;
mod topology;
mod view;
mod waiting;

use std::io::{BufRead, Read};

use serde::Deserialize;

use super::dump::{Assembled, Handles, Import, Tally, WaitingJob, assemble, name_of};
use super::error::FormatError;
use super::snapshot::{Snapshot, overcommitted};
use super::source::Source;
pub use holding::{Holding, Holdings, holdings};
use listing::Listing;
pub use topology::TopologyKeys;
pub use view::{
    ClaimView, NodeView, PodGroupView, PodView, SliceView, read_claim_view, read_node_view, read_pod_group_view,
    read_pod_view, read_slice_view,
};

/// Reads the files of one dump, each of which may be gzip'd, and one standard input.
///
/// A file is JSON or YAML, also several documents: what `kubectl get` prints, the lists of the API server, single objects,
/// bare lists, and a `snapshot.json` of KAI. Objects of other kinds are skipped.
///
/// - Whole GPUs count: `nvidia.com/gpu`, `amd.com/gpu`, `gpu.intel.com/i915` and `xe`. Nodes whose GPUs are cut (MIG) or
///   shared out (time-slicing, HAMi) are left out, and so are nodes without GPUs or with more than 16. A pod that holds a GPU for others to
///   share (KAI) holds it whole.
/// - A node takes new pods if it is ready, not cordoned, and has no taint that no listed pod with GPUs tolerates. Nodes
///   that selectors, required affinity or taints tell apart are other models.
/// - Pods with GPUs are jobs by their gang: see the order in `gang.rs`. A pod is pinned if nothing would make it again, or
///   if it is marked as not safe to evict. Pods without GPUs hold CPU and memory by a job
///   `NODE/without-gpus`, but for those of gangs of which others have GPUs.
/// - Pods of a PodDisruptionBudget that allows no disruption now are pinned; a budget that allows some is kept with the
///   snapshot, for who moves pods.
/// - Pods without a node are queued, by priority and age. Gangs of unlike pods are jobs of groups.
/// - Devices are those that the kubelet reports or a claim was given, else those that a scheduler wrote on the pod, else the lowest free ones.
/// - The domain is the NVLink clique, the rack the path of all other levels of `keys`; without `keys` the levels are those of
///   the first known set of labels.
///
/// # Errors
/// If a file cannot be read, is malformed, or if there are neither nodes nor pods.
pub fn read_kubernetes(paths: &[&str], keys: Option<&TopologyKeys>) -> Result<Import, FormatError> {
    let mut listing = Listing::default();
    for path in paths {
        let mut source = Source::open(path)?.not_empty("what kubectl get nodes,pods -A -o json prints")?;
        let name = source.name().to_owned();
        read(&name, source.reader(), &mut listing)?;
    }
    import(&name_of(paths), listing, keys)
}

/// Reads a dump of one file; `name` stands in errors.
///
/// # Errors
/// As for [`read_kubernetes`].
pub fn read_kubernetes_from(
    name: &str,
    reader: impl BufRead,
    keys: Option<&TopologyKeys>,
) -> Result<Import, FormatError> {
    let mut listing = Listing::default();
    read(name, reader, &mut listing)?;
    import(name, listing, keys)
}

fn read(name: &str, mut reader: impl BufRead, listing: &mut Listing) -> Result<(), FormatError> {
    let mut start = Vec::new();
    // The first byte that is no blank tells JSON from YAML.
    for byte in reader.by_ref().bytes() {
        start.push(byte.map_err(|error| FormatError::unreadable(name, error))?);
        if !start.last().is_some_and(u8::is_ascii_whitespace) {
            break;
        }
    }
    let is_json = matches!(start.last(), Some(b'{' | b'['));
    let whole = start.chain(reader);
    if is_json { read_json(name, whole, listing) } else { read_yaml(name, whole, listing) }
}

/// Reads one document after another.
fn read_json(name: &str, reader: impl Read, listing: &mut Listing) -> Result<(), FormatError> {
    let mut json = serde_json::Deserializer::from_reader(reader);
    loop {
        let mut track = serde_path_to_error::Track::new();
        let read = Listing::deserialize(serde_path_to_error::Deserializer::new(&mut json, &mut track));
        let place = |error| FormatError::json(name, Some(0), &track.path().to_string(), error);
        listing.append(read.map_err(place)?);
        match json.end() {
            Ok(()) => return Ok(()),
            Err(error) if error.is_io() => return Err(FormatError::unreadable(name, error.into())),
            // Something follows: another document, or what is wrong is told when it is read as one.
            Err(_) => {}
        }
    }
}

fn read_yaml(name: &str, mut reader: impl Read, listing: &mut Listing) -> Result<(), FormatError> {
    // A dump is as large as it is; what is out of proportion (aliases, depth) stays limited.
    let budget = serde_saphyr::budget! {
        max_reader_input_bytes: None,
        max_events: usize::MAX,
        max_nodes: usize::MAX,
        max_documents: usize::MAX,
        max_total_scalar_bytes: usize::MAX,
    };
    let options = serde_saphyr::options! { budget: budget, with_snippet: false };
    for document in serde_saphyr::read_with_options::<_, Listing>(&mut reader, options) {
        let mut document = document.map_err(|error| {
            let fault = FormatError::new(name, format_args!("found YAML that is no list of nodes and pods: {error}"));
            match error.location() {
                Some(location) => fault.at_line(location.line()),
                None => fault,
            }
        })?;
        if std::mem::take(&mut document.is_unnamed_list) {
            listing.unnamed_lists.push(name.to_owned());
        }
        listing.append(document);
    }
    Ok(())
}

fn import(input: &str, mut listing: Listing, keys: Option<&TopologyKeys>) -> Result<Import, FormatError> {
    if listing.nodes.is_empty() && listing.pods.is_empty() {
        let text = format!("found no nodes and no pods ({} other objects), expected some", listing.others);
        return Err(FormatError::new(input, text));
    }
    let mut tally = Tally::new(input);
    let is_given = keys.is_some();
    let (keys, unused) = TopologyKeys::choose(keys, &listing.topology_keys, &listing.nodes);
    if !is_given && !keys.keys().is_empty() {
        tally.met("labels that say where nodes are, outermost first", &keys.keys().join(", "));
    }
    if is_given && !listing.nodes.is_empty() {
        unused.iter().for_each(|key| tally.met("labels that would say where nodes are, and that no node has", key));
    }
    let cut = "YAML with items and no kind behind them: kubectl writes one, so what it wrote is cut off";
    listing.unnamed_lists.iter().for_each(|file| tally.met(cut, file));
    let mut running = running::running(&mut listing, &keys, &mut tally);
    let mut later = Tally::new(input);
    let waiting = waiting::waiting(&listing.pods, &mut running, &keys, &mut later);
    // What was read goes before the cluster is made of it.
    drop(listing);
    let fault = |error| FormatError::new(input, error);
    let assembled = assemble(&running.nodes, running.jobs, &mut tally).map_err(fault)?;
    let Assembled { cluster, index_source, origins } = assembled;
    let budgets = running.limits.into_iter().map(|limit| limit.of(&origins)).collect();
    let handles = Some(Handles::of_pods(origins, running.pods));
    let mut notes = tally.notes();
    notes.extend(overcommitted(&cluster));
    let snapshot = Snapshot { cluster, as_of: None, index_source: Some(index_source), notes, handles, budgets };
    // What it is called in its namespace.
    let own_name = |job: &WaitingJob| Some((job.name.split_once('/')?.1.to_owned(), job.name.clone()));
    let own_names = waiting.iter().filter_map(own_name).collect();
    Ok(Import { snapshot, waiting, waiting_notes: later.notes(), own_names })
}
