module slotwise.example/scheduler

go 1.22
