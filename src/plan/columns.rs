//! The integer program of a plan: who leaves, and what the room that is then there receives.
//!
//! One column for each class of nodes and each multiset that may leave it; one for each kind of room and each maximal
//! multiset that it can receive. Three kinds of rows tie them together: each node of a class loses one multiset (which may
//! be empty), no more rooms receive than there are, and of each item as much is received as has left; of the guest as much
//! as is asked for. What has left and come back to its node would only cost.

use rustc_hash::{FxHashMap, FxHashSet};

use super::integer::{Column, Program, Row, Sense};
use super::layout::{Class, Counts, GUEST, Item, Layout, UNBOUND};
use super::manner::Effect;
use super::packings::{Packings, fits};
use super::site::Spot;
use crate::cluster::{Cluster, NodeId};

/// More columns than this are not tried.
pub(super) const MOST_COLUMNS: usize = 60_000;

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
    /// What is to be the least.
    pub(super) objective: Objective,
    /// What the moves may cost at most.
    pub(super) most_cost: Option<i64>,
    /// What they may cost at most by another measure.
    pub(super) most_second: Option<(Objective, i64)>,
    /// The cluster, where shapes of nodes are the objective.
    pub(super) shapes: Option<&'a Cluster>,
    /// How few and how many nodes may be partial afterwards; then, or if that is the objective, everything that has left is
    /// placed exactly, and the layout must tell capacities apart.
    pub(super) partial: Option<(i64, i64)>,
    /// What a node that is partial afterwards holds, if that is known.
    pub(super) partial_busy: Option<u8>,
}

/// What a program is to have the least of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Objective {
    /// What the moves cost.
    Cost,
    /// Moves.
    Moves,
    /// Moved GPUs.
    Gpus,
    /// GPUs that nodes are given out of nowhere.
    Gifts,
    /// Partial nodes.
    Partial,
    /// What becomes of nodes that are left, each by itself and before anything comes: a hint, nothing that is proved.
    Shapes,
}

impl<'a> Asked<'a> {
    /// The guests of a spot, and nothing special.
    pub(super) fn of(spot: &'a Spot) -> Self {
        Self::within(spot.inside.as_deref(), spot.count)
    }

    /// So many guests on these nodes, or on any, and nothing special.
    pub(super) fn within(inside: Option<&'a [NodeId]>, count: i64) -> Self {
        Self {
            count,
            inside,
            apart: false,
            objective: Objective::Cost,
            most_cost: None,
            most_second: None,
            shapes: None,
            partial: None,
            partial_busy: None,
        }
    }

    fn exact(&self) -> bool {
        self.objective == Objective::Partial || self.partial.is_some()
    }
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
    /// All GPUs, where that matters.
    capacity: u8,
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
            for gift in 0..=if self.asked.objective == Objective::Gifts { most } else { 0 } {
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
            capacity: class.capacity,
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

    /// A column for each multiset that a room can receive; the maximal ones, unless what is received must be exact.
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
        let all = self.asked.exact();
        let mut packings = Packings { list: &list, all, chosen: Vec::new(), found: Vec::new(), steps: 0 };
        packings.fill(0, (room.free, room.cpu, room.memory))?;
        let mut found = packings.found;
        if room.whole && room.guests && layout.items[GUEST].whole {
            found.push(vec![(GUEST as u16, 1)]);
        }
        let used = layout.n_movers.iter().sum::<i64>() + self.asked.count;
        let room_upper = if all { nodes } else { nodes.min(used) };
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
        let exactly = if self.asked.exact() { Sense::Equal } else { Sense::AtMost };
        for room in (0..rooms).filter(|room| useful.contains(room)) {
            row_of_room[room] = Some(rows.len() as u32);
            rows.push(Row { sense: exactly, rhs: 0 });
        }
        let first_item = rows.len();
        rows.extend(
            (0..items).map(|item| Row { sense: exactly, rhs: if item == GUEST { -self.asked.count } else { 0 } }),
        );
        let mut limit = |most: Option<i64>| {
            most.map(|rhs| {
                rows.push(Row { sense: Sense::AtMost, rhs });
                rows.len() as u32 - 1
            })
        };
        let cost_row = limit(self.asked.most_cost);
        let second_row = limit(self.asked.most_second.map(|(_, most)| most));
        // That fewer are impossible is known to the program only as a row.
        let partial_row = limit(self.asked.partial.map(|(_, most)| most));
        let partial_floor = limit(self.asked.partial.map(|(least, _)| -least));
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
                let measure = |objective: Objective| match objective {
                    Objective::Cost => sum(&|item| item.cost),
                    Objective::Moves => sum(&|_| 1),
                    Objective::Gpus => sum(&|item| i64::from(item.gpus)),
                    Objective::Gifts => i64::from(*gift),
                    Objective::Partial => 0,
                    Objective::Shapes => {
                        let node = layout.members[self.columns.cells[*cell].class as usize].first();
                        let weight = |(cluster, &node)| Effect::of(cluster, layout, node, leave, &Vec::new()).weight();
                        if leave.is_empty() { 0 } else { self.asked.shapes.zip(node).map_or(0, weight) }
                    }
                };
                let moves_cost = measure(Objective::Cost);
                entries.extend(cost_row.filter(|_| moves_cost > 0).map(|row| (row, moves_cost as i32)));
                let other = self.asked.most_second.map_or(0, |(objective, _)| measure(objective));
                entries.extend(second_row.filter(|_| other > 0).map(|row| (row, other as i32)));
                let cost = measure(self.asked.objective);
                Column { cost, upper: self.columns.cells[*cell].nodes, entries }
            }
            Meaning::Receive { room, receive } => {
                let mut entries: Vec<(u32, i32)> = row_of_room[*room].map(|row| (row, 1)).into_iter().collect();
                entries.extend(receive.iter().map(|&(item, n)| (item_row(item), -i32::from(n))));
                let (room, upper) = &self.rooms[*room];
                let held = receive.iter().map(|&(item, n)| layout.items[usize::from(item)].gpus * n as u8);
                let busy = (room.capacity + held.sum::<u8>()).saturating_sub(room.free);
                let partial = busy > 0 && busy < room.capacity;
                entries.extend(partial_row.filter(|_| partial).map(|row| (row, 1)));
                entries.extend(partial_floor.filter(|_| partial).map(|row| (row, -1)));
                let cost = i64::from(partial && self.asked.objective == Objective::Partial);
                let ruled_out = partial && self.asked.partial_busy.is_some_and(|known| known != busy);
                Column { cost, upper: if ruled_out { 0 } else { *upper }, entries }
            }
        };
        let columns = self.columns.meanings.iter_mut().map(column).collect();
        self.columns.program = Program { rows, columns };
        Ok(())
    }
}
