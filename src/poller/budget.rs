//! How many invoices are asked about now, and which. Pure. Fair between classes, so that many old and hopeless invoices
//! never starve a young one, and the other way round.

use crate::invoice::silence::Class;

/// Whose turn it is. Kept from one choice to the next: while more is due than may be asked, there is room for one at a time.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Turn(usize);

/// Chooses up to `room` of the due ones: one of each class in turn, the longest due of its class first. The indexes point
/// into `due`, which is ordered by due time.
pub(crate) fn choose(due: &[Class], room: usize, turn: &mut Turn) -> Vec<usize> {
    let of = |class: Class| {
        due.iter()
            .enumerate()
            .filter(move |(_, c)| **c == class)
            .map(|(at, _)| at)
    };
    let mut queues = [of(Class::Urgent), of(Class::Young), of(Class::Old)];
    let mut chosen = Vec::with_capacity(room.min(due.len()));
    let mut passed_over = 0;
    while chosen.len() < room && passed_over < queues.len() {
        let next = queues.get_mut(turn.0).and_then(Iterator::next);
        passed_over = if next.is_some() { 0 } else { passed_over + 1 };
        chosen.extend(next);
        turn.0 = (turn.0 + 1) % queues.len();
    }
    chosen
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_class_starves_another() {
        let mut due = vec![Class::Old; 100];
        due.extend([Class::Young, Class::Urgent, Class::Young]);
        let first = |due: &[Class], room| choose(due, room, &mut Turn::default());
        assert_eq!(first(&due, 4), [101, 100, 0, 102]);
        assert_eq!(first(&due, 2), [101, 100]);
        assert_eq!(first(&[Class::Old, Class::Old], 5), [0, 1]);
        assert!(first(&[], 5).is_empty());
    }

    /// The usual case under load: a place is free when a question has ended, one at a time.
    #[test]
    fn no_class_starves_another_when_there_is_room_for_one() {
        let due = [Class::Urgent, Class::Urgent, Class::Young, Class::Old];
        let mut turn = Turn::default();
        let chosen: Vec<usize> = (0..6).flat_map(|_| choose(&due, 1, &mut turn)).collect();
        assert_eq!(chosen, [0, 2, 3, 0, 2, 3]);
    }
}
