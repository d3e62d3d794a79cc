//! Draws lines over axes, as SVG.

use maud::{Markup, PreEscaped, html};
use plotters::element::{DashedPathElement, PathElement, Polygon, Text};
use plotters::prelude::{ChartBuilder, Color, IntoDrawingArea, IntoFont, LineSeries, SVGBackend, WHITE};
use plotters::style::text_anchor::{HPos, Pos, VPos};

use super::axis::Axis;
use super::palette::{BOUND, Colour, GRID, INK};

/// The size of a chart, in pixels at full width.
pub(super) const WIDTH: u32 = 720;
const HEIGHT: u32 = 300;

/// Where the part with the lines begins and ends from left to right. A curve has fewer buckets than that has pixels.
pub(super) const INNER: std::ops::Range<u32> = MARGIN + LEFT..WIDTH - 2 * MARGIN;

/// What is beside the lines.
const MARGIN: u32 = 12;
const LEFT: u32 = 64;
const BOTTOM: u32 = 28;

/// The height of a letter; plotters makes it four fifths of that.
const LETTERS: u32 = 16;

/// A line, perhaps in a band.
#[derive(Clone, Debug, PartialEq)]
pub(in crate::report) struct Line {
    /// What it shows.
    pub(in crate::report) name: String,
    /// Its colour.
    pub(in crate::report) colour: Colour,
    /// Its points.
    pub(in crate::report) points: Vec<(f64, f64)>,
    /// From where to where it went around these points: x, least and most.
    pub(in crate::report) band: Vec<(f64, f64, f64)>,
}

/// A chart.
#[derive(Clone, Debug, PartialEq)]
pub(in crate::report) struct Chart {
    /// What is shown, on one line, with its unit.
    pub(in crate::report) title: String,
    /// To the right.
    pub(in crate::report) x: Axis,
    /// Upwards.
    pub(in crate::report) y: Axis,
    /// The lines, the first on top.
    pub(in crate::report) lines: Vec<Line>,
    /// A value that is not to be exceeded, and its name.
    pub(in crate::report) bound: Option<(f64, String)>,
}

/// For whom a chart is drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::report) enum Dress {
    /// For a page that says the rest: no title, no legend, no background.
    Page,
    /// To stand alone.
    File,
}

/// A chart that cannot be drawn.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("cannot draw {title:?}: {text}")]
pub struct ChartError {
    title: String,
    text: String,
}

impl Chart {
    /// Draws it.
    ///
    /// # Errors
    /// If the plotting library refuses.
    pub(in crate::report) fn svg(&self, dress: Dress) -> Result<String, ChartError> {
        let mut svg = String::new();
        let drawn = self.draw(&mut svg, dress);
        drawn.map_err(|error| ChartError { title: self.title.clone(), text: error.to_string() })?;
        Ok(svg)
    }

    /// Draws it for a page, as an element that says what it is.
    ///
    /// # Errors
    /// As [`Chart::svg`].
    pub(super) fn element(&self) -> Result<Markup, ChartError> {
        let svg = self.svg(Dress::Page)?;
        // The page has its own opening tag: without a size, so that it fits, and without a name space, which HTML knows.
        let lines = svg.split_once('>').map_or("", |(_, rest)| rest).trim_end().trim_end_matches("</svg>");
        Ok(html! {
            svg viewBox=(format!("0 0 {WIDTH} {HEIGHT}")) role="img" aria-label=(self.title) { (PreEscaped(lines)) }
        })
    }

    fn draw(&self, svg: &mut String, dress: Dress) -> Result<(), Box<dyn std::error::Error>> {
        // A title, and a row of the legend for each three lines.
        let legend_rows = self.lines.len().div_ceil(LEGEND_COLUMNS as usize) as u32;
        let head = if dress == Dress::File { 30 + legend_rows * 20 } else { 0 };
        let root = SVGBackend::with_string(svg, (WIDTH, HEIGHT + head)).into_drawing_area();
        if dress == Dress::File {
            root.fill(&WHITE)?;
            let title = ("sans-serif", LETTERS + 4).into_font().color(&INK.rgb());
            root.draw(&Text::new(self.title.clone(), (MARGIN as i32, MARGIN as i32), title))?;
        }
        let (head, body) = root.split_vertically(head);
        let mut chart = ChartBuilder::on(&body)
            .margin(MARGIN)
            .margin_right(MARGIN * 2)
            .set_left_and_bottom_label_area_size(BOTTOM)
            .y_label_area_size(LEFT)
            .build_cartesian_2d(self.x.clone(), self.y.clone())?;
        chart
            .configure_mesh()
            .disable_x_mesh()
            .bold_line_style(GRID.rgb())
            .light_line_style(plotters::style::TRANSPARENT)
            .axis_style(INK.rgb())
            .label_style(("sans-serif", LETTERS).into_font().color(&INK.rgb()))
            .draw()?;
        for line in self.lines.iter().rev() {
            if !line.band.is_empty() {
                let below = line.band.iter().map(|&(x, least, _)| (x, least));
                let above = line.band.iter().rev().map(|&(x, _, most)| (x, most));
                let band: Vec<_> = below.chain(above).collect();
                chart.draw_series([Polygon::new(band, line.colour.rgb().mix(0.15))])?;
            }
        }
        if let Some((value, _)) = &self.bound {
            let (start, end) = ((0.0, *value), (self.x.end(), *value));
            let style = BOUND.rgb().stroke_width(2);
            chart.draw_series([DashedPathElement::new(vec![start, end], 6, 4, style)])?;
        }
        for line in self.lines.iter().rev() {
            let points = line.points.iter().copied();
            chart.draw_series(LineSeries::new(points, line.colour.rgb().stroke_width(2)))?;
        }
        if let Some((value, name)) = &self.bound {
            let anchor = Pos::new(HPos::Left, VPos::Bottom);
            let text = ("sans-serif", LETTERS).into_font().color(&BOUND.rgb()).pos(anchor);
            chart.draw_series([Text::new(name.clone(), (self.x.end() / 100.0, *value), text)])?;
        }
        if dress == Dress::File {
            for (at, line) in self.lines.iter().enumerate() {
                let (column, row) = (at as i32 % LEGEND_COLUMNS, at as i32 / LEGEND_COLUMNS);
                let (x, y) = (MARGIN as i32 + column * LEGEND_WIDTH, 46 + row * 20);
                head.draw(&PathElement::new(vec![(x, y), (x + 18, y)], line.colour.rgb().stroke_width(3)))?;
                let anchor = Pos::new(HPos::Left, VPos::Center);
                let text = ("sans-serif", LETTERS).into_font().color(&INK.rgb()).pos(anchor);
                head.draw(&Text::new(line.name.clone(), (x + 24, y), text))?;
            }
        }
        root.present()?;
        Ok(())
    }
}

/// Names a row of the legend.
const LEGEND_COLUMNS: i32 = 3;
const LEGEND_WIDTH: i32 = 230;
