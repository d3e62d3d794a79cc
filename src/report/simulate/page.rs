//! The page: a comparison in one file that needs nothing else.

use maud::{DOCTYPE, Markup, PreEscaped, html};
use serde::Serialize;
use serde_json::Value;

use super::super::number::grouped;
use super::chart::{self, ChartError, Dress};
use super::columns::{Column, columns};
use super::figures::{Figure, NAMES, Source, figures};
use super::occupancy_map::{CLASSES, Map};
use super::palette::{self, NODES};
use super::table::{CLASS_COLUMNS, class_rows, setting_facts};
use super::{Run, Setting, document};
use crate::simulate::{Curve, Gauge, Overview, Scenario, Scheduler};

/// What a page is made of.
#[derive(Clone, Copy, Debug)]
pub struct PageSource<'a> {
    /// What all runs share.
    pub setting: &'a Setting<'a>,
    /// The cluster and the jobs.
    pub scenario: &'a Scenario,
    /// The runs.
    pub runs: &'a [Run],
    /// What was kept of each run.
    pub overviews: &'a [&'a Overview],
    /// The command that made it.
    pub command: &'a str,
    /// What there was to note about the input.
    pub notes: &'a [String],
}

/// Why there is no page.
#[derive(Debug, thiserror::Error)]
pub enum PageError {
    /// A chart cannot be drawn.
    #[error(transparent)]
    Chart(#[from] ChartError),
    /// A run cannot be written as JSON.
    #[error(transparent)]
    Json(#[from] serde_json::Error),
}

/// A comparison, ready to be drawn.
#[derive(Debug)]
pub struct Page<'a> {
    source: PageSource<'a>,
    /// The runs as JSON, a text each and read back.
    texts: Vec<String>,
    documents: Vec<Value>,
    columns: Vec<Column>,
    figures: Vec<Figure>,
    maps: Vec<NamedMap>,
}

/// The map of a run at a moment.
#[derive(Debug)]
struct NamedMap {
    run: usize,
    /// Its name in files.
    name: String,
    title: String,
    map: Map,
}

/// Moments of which there are maps.
const MOMENTS: [&str; 4] = ["peak-demand", "most-fragmented", "busiest", "end"];

/// The names of all pictures of a comparison of these schedulers, as files without an extension: the charts, and a map a
/// scheduler and moment. There is none of a moment that never comes, nor under the oracle.
pub fn picture_names(schedulers: &[Scheduler]) -> Vec<String> {
    let maps = |scheduler: &Scheduler| MOMENTS.map(|moment| map_name(*scheduler, moment));
    NAMES.map(str::to_owned).into_iter().chain(schedulers.iter().flat_map(maps)).collect()
}

fn map_name(scheduler: Scheduler, moment: &str) -> String {
    format!("map-{}-{moment}", scheduler.to_string().replace(':', "-"))
}

impl<'a> Page<'a> {
    /// Gathers what is to be drawn.
    ///
    /// # Errors
    /// If a run cannot be written as JSON.
    pub fn new(source: PageSource<'a>) -> Result<Self, PageError> {
        let texts = source.runs.iter().map(|run| serde_json::to_string(&document(source.setting, run)));
        let texts: Vec<String> = texts.collect::<Result<_, _>>()?;
        let documents: Vec<Value> = texts.iter().map(|text| serde_json::from_str(text)).collect::<Result<_, _>>()?;
        let PageSource { setting, scenario, runs, overviews, .. } = source;
        let figures = figures(&Source { setting, scenario, runs, overviews, documents: &documents });
        let mut maps = Vec::new();
        for (run, overview) in overviews.iter().enumerate() {
            let scheduler = runs[run].outcome.scheduler;
            let fragmented = overview.most_fragmented.as_ref();
            let n_sif = fragmented.map_or(0, |&(n_sif, _)| n_sif);
            let moments = [
                (overview.peak_demand.as_ref(), "when the trace asks for the most".to_owned()),
                (fragmented.map(|(_, occupancy)| occupancy), format!("when most fragmented, N·SIF {}", grouped(n_sif))),
                (overview.busiest.as_ref(), "when the most GPUs are busy".to_owned()),
                (overview.end.as_ref(), "at the end".to_owned()),
            ];
            for (moment, (occupancy, words)) in MOMENTS.into_iter().zip(moments) {
                let Some(occupancy) = occupancy else { continue };
                let map = Map::new(scenario.cluster(), occupancy);
                let at = grouped(occupancy.at);
                let title = format!("{scheduler} {words}, second {at}: {}", map.words());
                maps.push(NamedMap { run, name: map_name(scheduler, moment), title, map });
            }
        }
        let columns = columns(setting, runs);
        Ok(Self { source, texts, documents, columns, figures, maps })
    }

    /// All pictures as SVG files, by their names.
    ///
    /// # Errors
    /// If one cannot be drawn.
    pub fn pictures(&self) -> Result<Vec<(String, String)>, PageError> {
        let chart = |figure: &Figure| Ok((figure.name.to_owned(), figure.chart.svg(Dress::File)?));
        let mut pictures: Vec<(String, String)> = self.figures.iter().map(chart).collect::<Result<_, ChartError>>()?;
        let map = |map: &NamedMap| (map.name.clone(), map.map.svg(&map.title, true).into_string());
        pictures.extend(self.maps.iter().map(map));
        Ok(pictures)
    }

    /// The page as HTML.
    ///
    /// # Errors
    /// If a chart cannot be drawn.
    pub fn html(&self) -> Result<String, PageError> {
        let PageSource { setting, runs, command, notes, .. } = self.source;
        let charts: Vec<Markup> = self.figures.iter().map(|figure| self.figure(figure)).collect::<Result<_, _>>()?;
        let page = html! {
            (DOCTYPE)
            html lang="en" {
                head {
                    meta charset="utf-8";
                    meta name="viewport" content="width=device-width, initial-scale=1";
                    meta name="color-scheme" content="light dark";
                    // Nothing may be fetched, whatever stands in the input.
                    meta http-equiv="Content-Security-Policy"
                        content="default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; img-src data:";
                    link rel="icon" href="data:,";
                    title { "slotwise simulate: " (setting.trace) }
                    style { (PreEscaped(include_str!("page.css"))) (PreEscaped(self.style())) }
                }
                body {
                    header {
                        h1 { "slotwise " span { "simulate" } }
                        dl.facts {
                            @for (name, value) in setting_facts(setting, runs) { div { dt { (name) } dd { (value) } } }
                        }
                        h2.small { "Command" }
                        pre { code { (command) } }
                        @if !notes.is_empty() {
                            h2.small { "Notes on the input" }
                            ul.notes { @for note in notes { li { (note) } } }
                        }
                    }
                    main {
                        section {
                            h2 { "Policies" }
                            (self.comparison())
                            p.about {
                                "The best values are marked where a difference shows; sif-opt, a bound, takes no part. "
                                "AFR, AGU, FRAG and CAP are means over the time in which jobs wait. Times are in seconds."
                            }
                            details { summary { "What the columns mean" } dl.words {
                                @for column in &self.columns { dt { (column.name) } dd { (column.about) } }
                            } }
                        }
                        section {
                            h2 { "Over time, by job, by load" }
                            (self.legend())
                            p.about {
                                "A run is drawn in at most " (Curve::MOST) " stretches of equal length: a line for the exact "
                                "mean of each, a band from the exact least to the exact most value in it."
                            }
                            div.charts { @for chart in &charts { (chart) } }
                        }
                        @if !self.maps.is_empty() { (self.map_section()) }
                        section {
                            h2 { "Completion times and waits by the GPUs of a job" }
                            (self.classes())
                        }
                    }
                    footer {
                        "slotwise " (env!("CARGO_PKG_VERSION"))
                        ". The numbers of every run are in this file as JSON, as --format json prints them (id "
                        code { "runs" } "), and so are the series (id " code { "series" } ")."
                    }
                    script type="application/json" id="runs" { (json(&format!("[{}]", self.texts.join(",")))) }
                    script type="application/json" id="series" { (json(&serde_json::to_string(&self.series())?)) }
                    script { (PreEscaped(include_str!("page.js"))) }
                }
            }
        };
        Ok(page.into_string())
    }

    fn names(&self) -> impl Iterator<Item = String> + '_ {
        self.source.runs.iter().map(|run| run.outcome.scheduler.to_string())
    }

    /// What depends on the colours, and on how many runs there are.
    fn style(&self) -> String {
        let mut style = palette::rules();
        for run in 0..self.source.runs.len().min(palette::RUNS.len()) {
            let hex = palette::run(run).hex();
            style += &format!(
                "body:has(#run-{run}:not(:checked)) :is(.charts [stroke=\"{hex}\"],.charts [fill=\"{hex}\"],.run-{run})\
                 {{display:none}}\n"
            );
        }
        style
    }

    fn comparison(&self) -> Markup {
        let takes_part: Vec<bool> =
            self.source.runs.iter().map(|run| run.outcome.scheduler != Scheduler::SifOpt).collect();
        let best: Vec<Vec<bool>> =
            self.columns.iter().map(|column| column.best(&self.documents, &takes_part)).collect();
        html! {
            div.scroll tabindex="0" role="region" aria-label="Measures of all policies" {
                table.comparison {
                    thead { tr {
                        th scope="col" { "POLICY" }
                        @for column in &self.columns { th scope="col" title=(column.about) { (column.name) } }
                    } }
                    tbody { @for (run, (name, document)) in self.names().zip(&self.documents).enumerate() { tr {
                        th scope="row" { (swatch(run)) (name) }
                        @for (column, best) in self.columns.iter().zip(&best) {
                            td.best[best[run]] { (cell(column.value(document), &column.text(document)))
                                @if best[run] { span.star title="best" aria-label="best" { "★" } } }
                        }
                    } } }
                }
            }
        }
    }

    fn legend(&self) -> Markup {
        html! {
            fieldset.legend {
                legend { "Show" }
                @for (run, name) in self.names().enumerate() {
                    label {
                        @if run < palette::RUNS.len() { input type="checkbox" id=(format!("run-{run}")) checked; }
                        (swatch(run)) (name)
                    }
                }
            }
        }
    }

    fn figure(&self, figure: &Figure) -> Result<Markup, ChartError> {
        let seconds = self.source.overviews.iter().map(|overview| overview.curve.seconds()).max().unwrap_or(0);
        let (columns, rows) = &figure.numbers;
        let (title, unit) = figure.chart.title.split_once(':').unwrap_or((&figure.chart.title, ""));
        let chart = figure.chart.element()?;
        Ok(html! {
            figure id=(figure.name) data-gauge=[figure.gauge.map(|gauge| gauge as usize)]
                data-seconds=[figure.gauge.map(|_| seconds.max(1))]
                data-whole=[(figure.gauge == Some(Gauge::BusyGpus)).then_some(self.source.setting.gpus)] {
                figcaption { strong { (title) } @if !unit.is_empty() { ":" (unit) } span { (figure.about) } }
                div.plot data-width=(chart::WIDTH) data-left=(chart::INNER.start) data-right=(chart::INNER.end) { (chart) }
                @if figure.gauge.is_some() { output aria-live="off" {} }
                details {
                    summary { "Numbers" }
                    div.scroll tabindex="0" role="region" aria-label=(format!("Numbers: {}", figure.chart.title)) {
                        table {
                            @if figure.gauge.is_some() { caption { "mean (least–most)" } }
                            thead { tr { @for column in columns { th scope="col" { (column) } } } }
                            tbody { @for row in rows { tr { @for (at, cell) in row.iter().enumerate() {
                                @if at == 0 { th scope="row" { (cell) } } @else { td { (cell) } }
                            } } } }
                        }
                    }
                }
            }
        })
    }

    fn map_section(&self) -> Markup {
        let nodes_a_cell = self.maps.first().map_or(1, |map| map.map.nodes_a_cell);
        html! {
            section {
                h2 { "Where the GPUs are" }
                p.about {
                    @if nodes_a_cell == 1 { "A cell is a node, in the order of the cluster." }
                    @else { "A cell is " (nodes_a_cell) " nodes that follow one another, as full as they are together." }
                    " Partial nodes are orange."
                }
                ul.classes aria-hidden="true" {
                    @for (class, colour) in CLASSES.iter().zip(NODES) {
                        li { (patch(&colour.hex())) (class) }
                    }
                }
                div.maps { @for map in &self.maps {
                    figure class=(format!("run-{}", map.run)) {
                        figcaption { (swatch(map.run)) (map.title) }
                        (map.map.svg(&map.title, false))
                    }
                } }
            }
        }
    }

    fn classes(&self) -> Markup {
        html! {
            div.scroll tabindex="0" role="region" aria-label="Times by size of jobs" {
                table {
                    thead { tr { @for column in CLASS_COLUMNS { th scope="col" { (column) } } } }
                    tbody { @for (run, name) in self.names().enumerate() {
                        @for (at, row) in class_rows(&self.source.runs[run]).enumerate() { tr {
                            th scope="row" { @if at == 0 { (swatch(run)) (name) } }
                            @for cell in row { td { (cell) } }
                        } }
                    } }
                }
            }
        }
    }

    fn series(&self) -> Vec<Series> {
        let of = |(name, overview): (String, &&Overview)| {
            let (curve, setting) = (&overview.curve, self.source.setting);
            let extents = |gauge| {
                let of = |bucket: &crate::simulate::Bucket| {
                    let extent = bucket.extent(gauge);
                    (extent.sum, extent.min, extent.max)
                };
                curve.buckets().iter().map(of).collect()
            };
            Series {
                policy: name,
                gpus: setting.gpus,
                start_s: curve.start(),
                width_s: curve.width(),
                seconds: curve.buckets().iter().map(|bucket| bucket.seconds).collect(),
                gauges: Gauge::ALL.map(extents),
            }
        };
        self.names().zip(self.source.overviews).map(of).collect()
    }
}

/// A run over time. The gauges are N·SIF, busy GPUs, empty nodes and waiting jobs; of each stretch the sum over its seconds,
/// the least and the most value.
#[derive(Serialize)]
struct Series {
    policy: String,
    gpus: u64,
    start_s: u64,
    width_s: u64,
    seconds: Vec<u64>,
    gauges: [Vec<(u128, u64, u64)>; Gauge::ALL.len()],
}

/// JSON inside of a page: no text of it can end the element.
fn json(text: &str) -> PreEscaped<String> {
    PreEscaped(text.replace('<', "\\u003c"))
}

/// A value for people, with the number of the JSON behind it.
fn cell(value: Option<&Value>, text: &str) -> Markup {
    html! { @match value { Some(value) => data value=(value) { (text) }, None => (text) } }
}

fn swatch(run: usize) -> Markup {
    patch(&palette::run(run).hex())
}

fn patch(hex: &str) -> Markup {
    html! { i.swatch data-colour=(hex) {} }
}
