// What goes over the data port, and where it belongs.

import type { NodeId } from '../../model/ids.ts'
import type { DataMessage } from '../../wire/data/types.ts'
import type { RangeContext } from '../range/context.ts'
import type { TopicRuntimes } from '../topics/runtimes.ts'
import type { Channels } from './channels.ts'
import { FetchClient, FetchServer } from './fetches.ts'
import { Incoming } from './incoming.ts'
import { PackageReceiver, PackageSender } from './packages.ts'

export class DataPlane {
  readonly packages: PackageSender
  readonly fetches: FetchClient
  private readonly channels: Channels
  private readonly incoming: Incoming
  private readonly received: PackageReceiver
  private readonly served: FetchServer

  constructor(context: RangeContext, runtimes: TopicRuntimes, channels: Channels) {
    const { links } = channels
    this.channels = channels
    this.packages = new PackageSender(context, links)
    this.fetches = new FetchClient(context, links)
    this.incoming = new Incoming(context, runtimes, links)
    this.received = new PackageReceiver(context, links)
    this.served = new FetchServer(context, links)
    links.onLink((node, way, up, boot) => {
      if (way === 'out') this.dialled(node, up, boot)
      else this.accepted(node, up)
    })
  }

  private dialled(node: NodeId, up: boolean, boot: number): void {
    this.channels.link(node, up, boot)
    this.packages.link(node, up)
    this.fetches.link(node, up)
  }

  private accepted(node: NodeId, up: boolean): void {
    this.incoming.link(node, up)
    this.received.link(node)
    this.served.link(node)
  }

  receive(from: NodeId, boot: number, message: DataMessage): void {
    switch (message.kind) {
      case 'open':
        return this.incoming.open(from, boot, message)
      case 'append':
        return this.incoming.append(from, message)
      case 'watermarks':
        return this.incoming.watermarks(from, message)
      case 'opened':
        return this.channels.opened(from, boot, message)
      case 'acks':
        return this.channels.acks(from, message)
      case 'refuse':
        return this.channels.refuse(from, message)
      case 'stage':
        return this.received.receive(from, message)
      case 'stage-stored':
        return this.packages.stored(from, message)
      case 'stage-dropped':
        return this.received.dropped(from, message)
      case 'fetch':
        return this.served.receive(from, message)
      case 'fetched':
        return this.fetches.receive(from, message)
    }
  }

  stop(): void {
    this.channels.stop()
  }
}
