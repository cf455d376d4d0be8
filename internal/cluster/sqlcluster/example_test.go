package sqlcluster_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"example.com/shop/internal/cluster"
	"example.com/shop/internal/cluster/sqlcluster"
	"example.com/shop/internal/dlock"
	"example.com/shop/internal/platform/sqldb"
)

// An instance leads. Each transaction of its work begins with the row of its term, so a former leader is refused.
func ExampleElection() {
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	dir, err := os.MkdirTemp("", "cluster")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)
	db, err := sql.Open("sqlite", "file:"+filepath.Join(dir, "cluster.db")+"?_txlock=immediate")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer db.Close()
	for _, statement := range append(sqlcluster.Schema(sqldb.SQLite()), "CREATE TABLE runs (term INTEGER)") {
		if _, err := db.ExecContext(ctx, statement); err != nil {
			fmt.Println(err)
			return
		}
	}
	instance, err := sqlcluster.New(db, sqldb.SQLite(), sqlcluster.Config{})
	if err != nil {
		fmt.Println(err)
		return
	}
	election, err := instance.Election("leader", "shop-1")
	if err != nil {
		fmt.Println(err)
		return
	}
	work := func(ctx context.Context, term *cluster.Term) error {
		tx, err := db.BeginTx(ctx, nil)
		if err != nil {
			return err
		}
		defer tx.Rollback()
		if err := election.Hold(ctx, tx, term.Leader()); err != nil {
			return err
		}
		if _, err := tx.ExecContext(ctx, "INSERT INTO runs VALUES (?)", term.Fence().Token); err != nil {
			return err
		}
		return tx.Commit()
	}
	cluster.Lead{Election: election}.Run(ctx, func(ctx context.Context, term *cluster.Term) error {
		fmt.Println(term.Leader().Name, "works:", work(ctx, term))
		term.Resign(ctx)
		fmt.Println("and is refused later:", errors.Is(work(context.WithoutCancel(ctx), term), dlock.ErrFenced))
		stop() // as a signal would
		return nil
	})
	// Output:
	// shop-1 works: <nil>
	// and is refused later: true
}
