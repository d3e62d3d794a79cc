//! The integer program of a plan: who leaves, and what the room that is then there receives.
//!
//! One column for each class of nodes and each multiset that may leave it; one for each kind of room and each maximal
//! multiset that it can receive. Three kinds of rows tie them together: each node of a class loses one multiset (which may
//! be empty), no more rooms receive than there are, and of each item as much is received as has left; of the guest as much
//! as is asked for. What has left and come back to its node would only cost.

use rustc_hash::{FxHashMap, FxHashSet};

use super::integer::{Column, Program, Row, Sense};
use super::layout::{Class, Counts, GUEST, Item, Layout, UNBOUND};
use super::site::Spot;
use crate::cluster::NodeId;

/// More columns than this are not tried.
const MOST_COLUMNS: usize = 60_000;

/// More rows than this are not tried: the relaxation keeps the square of them.
const MOST_ROWS: usize = 1_500;

/// The program would be too large.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct TooLarge;

/// What is asked of a layout.
#[derive(Clone, Copy, Debug)]
pub(super) struct Asked<'a> {
    /// Guests.
    pub(super) count: i64,
    /// The nodes that may host them; all if `None`.
    pub(super) inside: Option<&'a [NodeId]>,
    /// Whether nodes that lose instances receive none: then every order of the moves is hitless.
    pub(super) apart: bool,
    /// If given, the second measure counts, and this is the most that the moves may cost.
    pub(super) second: Option<Second>,
    /// Whether nodes may be given free GPUs out of nowhere, which is then what costs.
    pub(super) gifts: bool,
}

impl<'a> Asked<'a> {
    /// The guests of a spot, and nothing special.
    pub(super) fn of(spot: &'a Spot) -> Self {
        Self { count: spot.count, inside: spot.inside.as_deref(), apart: false, second: None, gifts: false }
    }
}

/// A second measure, for plans that are equal by the first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Second {
    /// What the moves may cost by the first measure.
    pub(super) most_cost: i64,
    /// Whether it is GPUs that count, or else moves.
    pub(super) gpus: bool,
}

/// Nodes of one class, inside or outside of where the guest may go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Cell {
    pub(super) class: u32,
    pub(super) inside: bool,
    nodes: i64,
}

/// Room on a node, once what leaves it has left.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Room {
    kind: u32,
    homes: Vec<u32>,
    /// Guests may come.
    guests: bool,
    /// Movers may come.
    movers: bool,
    /// Nobody holds a GPU here.
    whole: bool,
    free: u8,
    cpu: i64,
    memory: i64,
}

/// What a column stands for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Meaning {
    /// A node of a cell loses so many of each item, and is given so many GPUs; it is then a room of this number, if of any
    /// use.
    Leave { cell: usize, leave: Counts, gift: u8, room: Option<usize> },
    /// A room receives so many of each item.
    Receive { room: usize, receive: Counts },
}

/// The program, and what its columns stand for.
#[derive(Clone, Debug)]
pub(super) struct Columns {
    pub(super) program: Program,
    pub(super) meanings: Vec<Meaning>,
    pub(super) cells: Vec<Cell>,
}

impl Columns {
    /// Lays out the program.
    pub(super) fn new(layout: &Layout, asked: &Asked<'_>) -> Result<Self, TooLarge> {
        Maker::new(layout, asked).make()
    }
}

struct Maker<'a> {
    layout: &'a Layout,
    asked: &'a Asked<'a>,
    columns: Columns,
    rooms: Vec<(Room, i64)>,
    room_numbers: FxHashMap<Room, usize>,
}

impl<'a> Maker<'a> {
    fn new(layout: &'a Layout, asked: &'a Asked<'a>) -> Self {
        let mut inside = vec![0i64; layout.classes.len()];
        for (class, members) in inside.iter_mut().zip(&layout.members) {
            *class = if asked.inside.is_none() { members.len() as i64 } else { 0 };
        }
        for node in asked.inside.unwrap_or_default() {
            if let Some(count) = inside.get_mut(layout.class_of[node.index()] as usize) {
                *count += 1;
            }
        }
        let cell = |(class, (&inside, members)): (u32, (&i64, &Vec<NodeId>))| {
            let outside = members.len() as i64 - inside;
            [Cell { class, inside: true, nodes: inside }, Cell { class, inside: false, nodes: outside }]
        };
        let cells =
            (0..).zip(inside.iter().zip(&layout.members)).flat_map(cell).filter(|cell| cell.nodes > 0).collect();
        let columns = Columns { program: Program::default(), meanings: Vec::new(), cells };
        Self { layout, asked, columns, rooms: Vec::new(), room_numbers: FxHashMap::default() }
    }

    fn make(mut self) -> Result<Columns, TooLarge> {
        for cell in 0..self.columns.cells.len() {
            self.leaves(cell)?;
        }
        for room in 0..self.rooms.len() {
            self.receipts(room)?;
        }
        self.rows()?;
        Ok(self.columns)
    }

    /// A column for each multiset that may leave a node of a cell.
    fn leaves(&mut self, at: usize) -> Result<(), TooLarge> {
        let Cell { class, inside, .. } = self.columns.cells[at];
        let class = &self.layout.classes[class as usize];
        let mut leave: Vec<u16> = vec![0; class.movers.len()];
        loop {
            if self.columns.meanings.len() >= MOST_COLUMNS {
                return Err(TooLarge);
            }
            let room = self.room(class, &leave, inside);
            let most = room.as_ref().map_or(0, |room| class.capacity.saturating_sub(room.free));
            for gift in 0..=if self.asked.gifts { most } else { 0 } {
                let room = room.clone().map(|room| self.number(Room { free: room.free + gift, ..room }, at));
                let counts = class.movers.iter().zip(&leave);
                let leave = counts.filter(|&(_, &n)| n > 0).map(|(&(item, _), &n)| (item, n)).collect();
                self.columns.meanings.push(Meaning::Leave { cell: at, leave, gift, room });
            }
            // The next multiset, counted like a number whose digits are the counts.
            let Some(digit) = leave.iter().zip(&class.movers).position(|(&n, &(_, most))| n < most) else { break };
            leave[..digit].fill(0);
            leave[digit] += 1;
        }
        Ok(())
    }

    /// The number of a kind of room, which nodes of a cell may become.
    fn number(&mut self, room: Room, cell: usize) -> usize {
        let next = self.rooms.len();
        let number = *self.room_numbers.entry(room).or_insert_with_key(|room| {
            self.rooms.push((room.clone(), 0));
            next
        });
        self.rooms[number].1 += self.columns.cells[cell].nodes;
        number
    }

    /// What room is there once so many of each mover have left; `None` if nobody may come.
    fn room(&self, class: &Class, leave: &[u16], inside: bool) -> Option<Room> {
        let mut room = Room {
            kind: class.kind,
            homes: class.homes.clone(),
            guests: inside,
            movers: !self.asked.apart || leave.iter().all(|&n| n == 0),
            whole: false,
            free: class.free,
            cpu: class.cpu,
            memory: class.memory,
        };
        for (&(item, _), &n) in class.movers.iter().zip(leave) {
            let item = &self.layout.items[usize::from(item)];
            room.free += item.gpus * n as u8;
            let add = |amount: i64, each: i64| if amount == UNBOUND { UNBOUND } else { amount + each * i64::from(n) };
            (room.cpu, room.memory) = (add(room.cpu, item.cpu), add(room.memory, item.memory));
        }
        room.whole = class.whole && room.free == class.clear;
        // What asks for none of a resource does not mind that it is overcommitted.
        (room.cpu, room.memory) = (room.cpu.max(0), room.memory.max(0));
        (room.guests || room.movers).then_some(room)
    }

    /// A column for each maximal multiset that a room can receive.
    fn receipts(&mut self, at: usize) -> Result<(), TooLarge> {
        let (room, nodes) = self.rooms[at].clone();
        let layout = self.layout;
        let limit = |item: usize| {
            let limit = match item {
                GUEST => {
                    if room.guests {
                        self.asked.count
                    } else {
                        0
                    }
                }
                _ => {
                    if room.movers {
                        layout.n_movers[item]
                    } else {
                        0
                    }
                }
            };
            if layout.admits(room.kind, &room.homes, item) { limit } else { 0 }
        };
        let mut list: Vec<(u16, &Item, i64)> = Vec::new();
        for (item, number) in layout.items.iter().zip(0u16..) {
            let limit = limit(usize::from(number));
            if limit > 0 && !item.whole && fits(item, 1, (room.free, room.cpu, room.memory)) {
                list.push((number, item, limit));
            }
        }
        // Large ones first: what is left for the small is then soon told.
        list.sort_by_key(|&(number, item, _)| (std::cmp::Reverse(item.gpus), number));
        let mut packings = Packings { list: &list, chosen: Vec::new(), found: Vec::new(), steps: 0 };
        packings.fill(0, (room.free, room.cpu, room.memory))?;
        let mut found = packings.found;
        if room.whole && room.guests && layout.items[GUEST].whole {
            found.push(vec![(GUEST as u16, 1)]);
        }
        let room_upper = nodes.min(layout.n_movers.iter().sum::<i64>() + self.asked.count);
        for receive in found {
            if self.columns.meanings.len() >= MOST_COLUMNS {
                return Err(TooLarge);
            }
            self.columns.meanings.push(Meaning::Receive { room: at, receive });
        }
        self.rooms[at].1 = room_upper;
        Ok(())
    }

    fn rows(&mut self) -> Result<(), TooLarge> {
        let layout = self.layout;
        let (cells, rooms, items) = (self.columns.cells.len(), self.rooms.len(), layout.items.len());
        // Rooms that nothing fits into need no row.
        let useful: FxHashSet<usize> = self
            .columns
            .meanings
            .iter()
            .filter_map(|meaning| match meaning {
                Meaning::Receive { room, .. } => Some(*room),
                Meaning::Leave { .. } => None,
            })
            .collect();
        let mut row_of_room = vec![None; rooms];
        let mut rows: Vec<Row> =
            self.columns.cells.iter().map(|cell| Row { sense: Sense::Equal, rhs: cell.nodes }).collect();
        for room in (0..rooms).filter(|room| useful.contains(room)) {
            row_of_room[room] = Some(rows.len() as u32);
            rows.push(Row { sense: Sense::AtMost, rhs: 0 });
        }
        let first_item = rows.len();
        rows.extend(
            (0..items).map(|item| Row { sense: Sense::AtMost, rhs: if item == GUEST { -self.asked.count } else { 0 } }),
        );
        let cost_row = self.asked.second.map(|second| {
            rows.push(Row { sense: Sense::AtMost, rhs: second.most_cost });
            rows.len() as u32 - 1
        });
        if rows.len() > MOST_ROWS {
            return Err(TooLarge);
        }
        debug_assert!(cells <= first_item);
        let item_row = |item: u16| first_item as u32 + u32::from(item);
        let column = |meaning: &mut Meaning| match meaning {
            Meaning::Leave { cell, leave, gift, room } => {
                *room = room.filter(|&room| row_of_room[room].is_some());
                let mut entries = vec![(*cell as u32, 1)];
                entries.extend(room.and_then(|room| row_of_room[room]).map(|row| (row, -1)));
                entries.extend(leave.iter().map(|&(item, n)| (item_row(item), i32::from(n))));
                let sum = |of: &dyn Fn(&Item) -> i64| {
                    leave.iter().map(|&(item, n)| of(&layout.items[usize::from(item)]) * i64::from(n)).sum::<i64>()
                };
                let moves = sum(&|item| item.cost);
                entries.extend(cost_row.filter(|_| moves > 0).map(|row| (row, moves as i32)));
                let cost = match self.asked.second {
                    _ if self.asked.gifts => i64::from(*gift),
                    None => moves,
                    Some(Second { gpus: true, .. }) => sum(&|item| i64::from(item.gpus)),
                    Some(Second { gpus: false, .. }) => sum(&|_| 1),
                };
                Column { cost, upper: self.columns.cells[*cell].nodes, entries }
            }
            Meaning::Receive { room, receive } => {
                let mut entries: Vec<(u32, i32)> = row_of_room[*room].map(|row| (row, 1)).into_iter().collect();
                entries.extend(receive.iter().map(|&(item, n)| (item_row(item), -i32::from(n))));
                Column { cost: 0, upper: self.rooms[*room].1, entries }
            }
        };
        let columns = self.columns.meanings.iter_mut().map(column).collect();
        self.columns.program = Program { rows, columns };
        Ok(())
    }
}

/// Whether `n` instances fit into so many GPUs, so much CPU and memory.
fn fits(item: &Item, n: i64, (free, cpu, memory): (u8, i64, i64)) -> bool {
    i64::from(item.gpus) * n <= i64::from(free) && item.cpu * n <= cpu && item.memory * n <= memory
}

struct Packings<'a> {
    list: &'a [(u16, &'a Item, i64)],
    chosen: Counts,
    found: Vec<Counts>,
    steps: usize,
}

impl Packings<'_> {
    /// All ways to go on with the items from `at` on in what is left.
    fn fill(&mut self, at: usize, left: (u8, i64, i64)) -> Result<(), TooLarge> {
        self.steps += 1;
        if self.steps > 20 * MOST_COLUMNS {
            return Err(TooLarge);
        }
        let Some(&(number, item, limit)) = self.list.get(at) else {
            if !self.chosen.is_empty() && self.is_maximal(left) {
                self.found.push(self.chosen.clone());
            }
            return if self.found.len() > MOST_COLUMNS { Err(TooLarge) } else { Ok(()) };
        };
        let mut n: u16 = 0;
        let mut room = left;
        loop {
            self.fill(at + 1, room)?;
            if i64::from(n) >= limit || n == u16::MAX || !fits(item, 1, room) {
                break;
            }
            if n > 0 {
                self.chosen.pop();
            }
            n += 1;
            room = (room.0 - item.gpus, less(room.1, item.cpu), less(room.2, item.memory));
            self.chosen.push((number, n));
        }
        if n > 0 {
            self.chosen.pop();
        }
        Ok(())
    }

    /// Whether nothing more fits.
    fn is_maximal(&self, left: (u8, i64, i64)) -> bool {
        self.list.iter().all(|&(number, item, limit)| {
            let n = self.chosen.iter().find(|&&(chosen, _)| chosen == number).map_or(0, |&(_, n)| i64::from(n));
            n >= limit || !fits(item, 1, left)
        })
    }
}

fn less(amount: i64, by: i64) -> i64 {
    if amount == UNBOUND { UNBOUND } else { amount - by }
}
