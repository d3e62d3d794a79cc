//! The curve of a plan for few partial nodes: N·SIF by moves.

use serde::Serialize;

use super::super::number::grouped;
use super::super::simulate::axis::Axis;
use super::super::simulate::chart::{Chart, ChartError, Dress, Line};
use super::super::simulate::palette;
use super::super::table::{Align, Rows};
use crate::plan::{Curve, CurvePoint};

/// A point.
#[derive(Serialize)]
pub(super) struct PointOut {
    moves: u64,
    n_sif: i64,
    partial: u64,
    phi_star: u64,
    proved: bool,
}

/// All points.
pub(super) fn curve_points(curve: &Curve) -> Vec<PointOut> {
    let point = |point: &CurvePoint| {
        let CurvePoint { moves, partial, phi_star, proved } = *point;
        PointOut { moves, n_sif: point.n_sif(), partial, phi_star, proved }
    };
    curve.points.iter().map(point).collect()
}

/// For people.
pub(super) fn curve_table(curve: &Curve) -> String {
    let (left, right) = (|name| (name, Align::Left), |name| (name, Align::Right));
    let mut rows =
        Rows::new(&[right("UP TO MOVES"), right("N·SIF"), right("PARTIAL NODES"), right("Φ*"), left("PROVED")]);
    for point in &curve.points {
        let proved = if point.proved { "yes" } else { "no" };
        rows.push([
            grouped(point.moves),
            grouped(point.n_sif()),
            grouped(point.partial),
            grouped(point.phi_star),
            proved.to_owned(),
        ]);
    }
    rows.text()
}

/// As a chart, in SVG.
///
/// # Errors
/// If the plotting library refuses.
pub fn curve_svg(curve: &Curve) -> Result<String, ChartError> {
    let n_proved = curve.points.iter().filter(|point| point.proved).count();
    let proved = if n_proved == curve.points.len() {
        "all proved".to_owned()
    } else {
        format!("{} of {} points proved", grouped(n_proved as u64), grouped(curve.points.len() as u64))
    };
    // Below 0 there is no axis: what runs is packed better than its pools allow by themselves.
    let n_sif = |point: &CurvePoint| point.n_sif().max(0) as f64;
    let partial = |point: &CurvePoint| point.partial as f64;
    let line = |at, name: String, value: &dyn Fn(&CurvePoint) -> f64| Line {
        name,
        colour: palette::run(at),
        points: steps(&curve.points, value),
        band: Vec::new(),
    };
    // Moves between pools change it, so it is a line like the others.
    let phi_star = |point: &CurvePoint| point.phi_star as f64;
    let most = curve.points.iter().map(|point| partial(point).max(phi_star(point))).fold(0.0, f64::max);
    let chart = Chart {
        title: format!("N·SIF by moves: partial nodes that no packing needs ({proved})"),
        x: Axis::counts(curve.points.last().map_or(0.0, |point| point.moves as f64)),
        y: Axis::counts(most),
        lines: vec![
            line(0, "N·SIF".to_owned(), &n_sif),
            line(1, "partial nodes".to_owned(), &partial),
            line(2, "Φ*".to_owned(), &phi_star),
        ],
        bound: None,
    };
    chart.svg(Dress::File)
}

/// A value holds until the next number of moves that is known to do better.
fn steps(points: &[CurvePoint], value: &dyn Fn(&CurvePoint) -> f64) -> Vec<(f64, f64)> {
    let mut line: Vec<(f64, f64)> = Vec::with_capacity(2 * points.len());
    for point in points {
        let (x, y) = (point.moves as f64, value(point));
        if let Some(&(_, before)) = line.last() {
            line.push((x, before));
        }
        line.push((x, y));
    }
    line
}
