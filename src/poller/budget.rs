//! Which class of invoices is asked about next. Pure. The most pressing goes first, and the others keep a share, so that
//! many old and hopeless invoices never starve a young one, and the other way round. What a restore wants polled goes last.

use crate::invoice::silence::Class;

/// Urgent ones pass others that wait so often in a row: a flood of nudges leaves the rest a quarter of the turns.
const URGENT_IN_A_ROW: u32 = 3;
/// Young ones pass old ones that wait so often in a row: 300 young invoices at 5 turns per second are each asked within
/// 64 s, and an old one has its turn every 3.2 s.
pub(crate) const YOUNG_IN_A_ROW: u32 = 15;
/// Old ones pass those of a restore that wait so often in a row: they are open, and customers may still pay them.
const OLD_IN_A_ROW: u32 = 3;

/// Whose turn it is. Kept from one choice to the next.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Turn {
    /// Turns in a row in which urgent ones passed others that waited.
    urgent: u32,
    /// Turns of young ones, since the last turn of another, in which they passed older ones that waited.
    young: u32,
    /// The same of old ones, which passed those of a restore.
    old: u32,
}

impl Turn {
    /// The class whose turn it is, out of those of which one waits. The turn counts as taken.
    pub(crate) fn next(&mut self, waits: impl Fn(Class) -> bool) -> Option<Class> {
        let [urgent, young, old, restored] = Class::ALL.map(waits);
        let passes = |run: u32, most: u32, others: bool| !others || run < most;
        let older = old || restored;
        let others = young || older;
        if urgent && passes(self.urgent, URGENT_IN_A_ROW, others) {
            self.urgent = if others { self.urgent + 1 } else { 0 };
            return Some(Class::Urgent);
        }
        self.urgent = 0;
        if young && passes(self.young, YOUNG_IN_A_ROW, older) {
            self.young = if older { self.young + 1 } else { 0 };
            return Some(Class::Young);
        }
        self.young = 0;
        if old && passes(self.old, OLD_IN_A_ROW, restored) {
            self.old = if restored { self.old + 1 } else { 0 };
            return Some(Class::Old);
        }
        self.old = 0;
        restored.then_some(Class::Restored)
    }
}

/// Chooses up to `room` of the due ones, in the order in which they have their turns; of a class those that stand first
/// go first. The indexes point into `due`.
pub(crate) fn choose(due: &[Class], room: usize, turn: &mut Turn) -> Vec<usize> {
    let of = |class: Class| {
        due.iter()
            .enumerate()
            .filter(move |(_, c)| **c == class)
            .map(|(at, _)| at)
            .peekable()
    };
    let mut queues = Class::ALL.map(|class| (class, of(class)));
    let mut chosen = Vec::with_capacity(room.min(due.len()));
    while chosen.len() < room {
        let waiting = queues.each_mut().map(|(_, queue)| queue.peek().is_some());
        let waits = |class: Class| {
            Class::ALL
                .iter()
                .zip(waiting)
                .any(|(c, w)| *c == class && w)
        };
        let Some(class) = turn.next(waits) else { break };
        let queue = queues.iter_mut().find(|(c, _)| *c == class);
        chosen.extend(queue.and_then(|(_, queue)| queue.next()));
    }
    chosen
}

#[cfg(test)]
mod tests {
    use super::*;

    /// How often each class has its turn while these always wait.
    fn shares(turns: u32, waits: &[Class]) -> [u32; 4] {
        let mut turn = Turn::default();
        let mut shares = [0; 4];
        for _ in 0..turns {
            let class = turn.next(|class| waits.contains(&class)).expect("a turn");
            for (share, of) in shares.iter_mut().zip(Class::ALL) {
                *share += u32::from(of == class);
            }
        }
        shares
    }

    #[test]
    fn the_most_pressing_goes_first_and_nobody_starves() {
        use Class::{Old, Restored, Urgent, Young};
        assert_eq!(shares(64, &[Urgent, Young, Old]), [48, 15, 1, 0]);
        assert_eq!(shares(320, &[Young, Old]), [0, 300, 20, 0]);
        assert_eq!(shares(300, &[Young]), [0, 300, 0, 0]);
        assert_eq!(shares(8, &[Urgent, Old]), [6, 0, 2, 0]);
        assert_eq!(shares(9, &[Urgent]), [9, 0, 0, 0]);
        assert_eq!(shares(8, &[Old, Restored]), [0, 0, 6, 2]);
        assert_eq!(shares(320, &[Young, Restored]), [0, 300, 0, 20]);
        assert_eq!(shares(256, &Class::ALL), [192, 60, 3, 1]);
        assert_eq!(Turn::default().next(|_| false), None);
    }

    #[test]
    fn a_lone_young_one_has_the_next_turn_however_many_old_ones_wait() {
        let mut turn = Turn::default();
        for round in 1..1_000_u32 {
            for _ in 0..round % 7 {
                assert_eq!(turn.next(|class| class == Class::Old), Some(Class::Old));
            }
            let next = turn.next(|class| class != Class::Urgent);
            // One that comes alone never follows fifteen others without an old one between them.
            if round % 7 > 0 {
                assert_eq!(next, Some(Class::Young), "round {round}");
            }
        }
    }

    #[test]
    fn turns_without_anybody_else_waiting_are_no_debt() {
        let mut turn = Turn::default();
        for _ in 0..100 {
            assert!(turn.next(|class| class == Class::Urgent).is_some());
            assert!(turn.next(|class| class == Class::Young).is_some());
        }
        for wanted in [Class::Urgent, Class::Urgent, Class::Urgent, Class::Young] {
            assert_eq!(turn.next(|_| true), Some(wanted));
        }
    }

    #[test]
    fn of_a_class_those_that_stand_first_go_first() {
        let mut due = vec![Class::Old; 100];
        due.extend([Class::Young, Class::Urgent, Class::Young]);
        let first = |due: &[Class], room| choose(due, room, &mut Turn::default());
        assert_eq!(first(&due, 4), [101, 100, 102, 0]);
        assert_eq!(first(&[Class::Old, Class::Old], 5), [0, 1]);
        assert!(first(&[], 5).is_empty());
        let mut turn = Turn::default();
        let one_by_one: Vec<usize> = (0..4).flat_map(|_| choose(&due, 1, &mut turn)).collect();
        assert_eq!(one_by_one, [101, 101, 101, 100]);
    }
}
