// The slots on a device's multiprocessors that workspaces reserve for cooperative launches, so that runs of
// several executables and threads cannot deadlock each other (AStitch, 3.2.3; docs/streams.md).
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <list>
#include <memory>
#include <mutex>

#include "target/residency.hpp"

namespace fuse::runtime {

/// The reservations on one device. Thread safe; asked where workspaces are made, never by a run.
class ResidencyLedger : public std::enable_shared_from_this<ResidencyLedger> {
  struct Entry {
    schedule::Alternatives launches;
    const void* turns = nullptr;
  };

 public:
  /// Slots that are reserved until it is destroyed. Holds the ledger.
  class Reservation {
   public:
    Reservation(std::shared_ptr<ResidencyLedger> ledger, std::list<Entry>::iterator entry)
        : ledger_(std::move(ledger)), entry_(entry) {}
    ~Reservation();
    Reservation(const Reservation&) = delete;
    Reservation& operator=(const Reservation&) = delete;

   private:
    std::shared_ptr<ResidencyLedger> ledger_;
    std::list<Entry>::iterator entry_;
  };

  /// The ledger of the device, the same for all handles of it that the process makes: what runs on it shares
  /// its slots.
  static std::shared_ptr<ResidencyLedger> of(const void* library, const void* device);

  /// Null where not all of the launches would find slots beside those that are reserved. Reservations that
  /// take `turns` with the same thing (memory, which two runs never use at a time) reserve slots for one of
  /// them at a time; null takes turns with nobody. No launches: always granted.
  std::unique_ptr<Reservation> reserve(schedule::Alternatives launches, const void* turns, const Target&);

 private:
  std::mutex mutex_;
  std::list<Entry> entries_;
};

}  // namespace fuse::runtime
